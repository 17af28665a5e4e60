"""Predator and prey in Canada, 1900-1920: the Lotka-Volterra equations fitted to the fur trade's records.

The model is B. Carpenter's, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan" (Stan case
studies, 28 January 2018). With u hares and v lynx, in thousands of pelts,

    du/dt = (alpha - beta v) u          alpha, gamma  ~ Normal(1, 0.5), positive
    dv/dt = (-gamma + delta u) v        beta, delta   ~ Normal(0.05, 0.05), positive
                                        u(0), v(0)    ~ LogNormal(log 10, 1)
    observed_k(t) ~ LogNormal(log z_k(t), sigma_k),   sigma_k ~ LogNormal(-1, 1),   z = (u, v)

It is sampled by Hamiltonian Monte Carlo: the solver is a ``scan``, its gradient ``grad``, the chains
``vmap``, all in one ``jit``. ``python -m demo.lotka_volterra`` prints the posterior beside the published one
and draws a plot.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import xform
import xform.numpy as jnp
from demo import diagnostics, hmc
from xform import lax

# name: (mean, standard deviation) of the posterior as published for Stan
PUBLISHED = {
    "alpha": (0.55, 0.06),
    "beta": (0.028, 0.004),
    "gamma": (0.80, 0.09),
    "delta": (0.024, 0.004),
    "hare in 1900": (34.0, 2.9),
    "lynx in 1900": (5.9, 0.53),
    "sigma of hare": (0.25, 0.04),
    "sigma of lynx": (0.25, 0.04),
}

STEPS_PER_YEAR = 10  # at the posterior's mean the solution is off by 1e-6 of itself; the posterior's width is 1e-1
SPREAD = 0.2  # of the points where chains start, in logarithms: about twice the posterior's

HERE = Path(__file__).parent
PLOT = HERE / "output" / "lotka_volterra.png"


def load_data() -> tuple[np.ndarray, np.ndarray]:
    """The years (21,), and the pelts of hare and lynx in them, in thousands (21, 2)."""
    table = np.genfromtxt(HERE / "data" / "lynx_hare.csv", delimiter=",", names=True)
    return table["year"].astype(int), np.stack([table["hare"], table["lynx"]], axis=1)


YEARS, PELTS = load_data()


# The model.


def solve(rates, initial, steps_per_year=STEPS_PER_YEAR):
    """Hares and lynx (steps + 1, 2) in the years from `initial` (2,) on: the classical Runge-Kutta method."""
    alpha, beta, gamma, delta = rates
    growth, interaction = jnp.stack([alpha, -gamma]), jnp.stack([-beta, delta])
    dt = 1 / steps_per_year

    def slope(z):
        return (growth + interaction * z[::-1]) * z

    def step(z, _):
        k1 = slope(z)
        k2 = slope(z + dt / 2 * k1)
        k3 = slope(z + dt / 2 * k2)
        k4 = slope(z + dt * k3)
        z = z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return z, z

    _, z = lax.scan(step, initial, None, length=(len(YEARS) - 1) * steps_per_year)
    return jnp.concatenate([initial[None], z])


def log_density(theta):
    """Log posterior, up to a constant, at the logarithms `theta` (8,) of the parameters in PUBLISHED."""
    parameters = jnp.exp(theta)
    rates, initial, sigma = parameters[:4], parameters[4:6], parameters[6:]
    prior = (
        normal(rates, jnp.array([1.0, 0.05, 1.0, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05]))
        + normal(theta[4:6], jnp.log(10.0), 1.0)
        + normal(theta[6:], -1.0, 1.0)
    )
    # The rates themselves are normal, so their density in theta takes the Jacobian of exp; of the other
    # parameters it is the logarithms that are normal, and theta is the logarithms.
    jacobian = jnp.sum(theta[:4])
    solution = solve(rates, initial)[::STEPS_PER_YEAR]
    return prior + jacobian + normal(jnp.log(PELTS), jnp.log(solution), sigma)


def normal(x, mean, sd):
    """Sum of the log densities of independent normal distributions, without the constant."""
    return jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd))


# The fit.


def starting_points(rng: np.random.Generator, chains: int, candidates: int = 100) -> np.ndarray:
    """Logarithms of parameters (chains, 8): for each chain the best of random points around a rough guess.

    The guess is what small oscillations tell: they go around u = gamma / delta, v = alpha / beta with the
    period 2 pi / sqrt(alpha gamma), and ten years is what one sees. The choice keeps chains out of a local
    maximum with e^-40 of the posterior's density, where the model's period is wrong and its sigmas are large.
    """
    rate = 2 * np.pi / 10
    hare, lynx = PELTS.mean(axis=0)
    guess = np.log([rate, rate / lynx, rate, rate / hare, *PELTS[0], 0.4, 0.4])
    points = guess + rng.normal(scale=SPREAD, size=(chains, candidates, len(guess)))
    density = np.asarray(xform.jit(xform.vmap(xform.vmap(log_density)))(points))
    return points[np.arange(chains), density.argmax(axis=1)]


def fit(seed=0, *, chains=4, warmup=1000, draws=1000, progress=sys.stderr) -> hmc.Samples:
    """Sample the posterior; the result's `draws` (chains, draws, 8) are logarithms in PUBLISHED's order."""
    initial = starting_points(np.random.default_rng(seed), chains)
    return hmc.sample(log_density, initial, SPREAD, seed, warmup=warmup, draws=draws, progress=progress)


def predict(draws: np.ndarray, quantiles, seed=0) -> tuple[np.ndarray, np.ndarray]:
    """Posterior predictive quantiles of the pelts: the times (n,) and the values (quantiles, n, 2)."""
    parameters = np.exp(draws.reshape(-1, draws.shape[-1]))
    z = np.asarray(xform.jit(xform.vmap(solve))(parameters[:, :4], parameters[:, 4:6]))
    # Errors of different years are independent, but the band at a time depends on that time's only: one error
    # for each draw gives the same bands as one for each draw and time, and smooth ones.
    error = np.random.default_rng(seed).normal(scale=parameters[:, None, 6:])
    times = YEARS[0] + np.arange(z.shape[1]) / STEPS_PER_YEAR
    return times, np.quantile(z * np.exp(error), quantiles, axis=0)


# What it tells.


def report(samples: hmc.Samples) -> tuple[str, bool]:
    """The posterior beside the published one as a table, and whether it is the same.

    It is when no mean is further than half a standard deviation from the published one, and R-hat is below
    1.01.
    """
    lines = [f"{'':15}{'Stan (2018)':>18}{'xform':>20}{'apart':>10}{'R-hat':>9}{'ESS':>8}"]
    apart, rhats = [], []
    for (name, (mean, sd)), draws in zip(PUBLISHED.items(), np.moveaxis(np.exp(samples.draws), -1, 0), strict=True):
        apart.append((draws.mean() - mean) / sd)
        rhats.append(diagnostics.split_rhat(draws))
        digits = 4 if mean < 0.1 else 3 if mean < 1 else 2
        lines.append(
            f"{name:15}{mean:>10} {f'({sd})':7}"
            f"{draws.mean():>12.{digits}f} {f'({draws.std():.{digits}f})':8}"
            f"{apart[-1]:>+7.2f} sd{rhats[-1]:>8.3f}{diagnostics.effective_sample_size(draws):>8.0f}"
        )
    chains, iterations, _ = samples.draws.shape
    lines.append(
        f"\n{chains} chains of {iterations} draws after warm-up in {samples.seconds:.1f} s; "
        f"acceptance {samples.acceptance:.2f}, divergences {samples.divergences}"
    )
    agrees = max(np.abs(apart)) < 0.5 and max(rhats) < 1.01
    verdict = "The published posterior is reproduced" if agrees else "The published posterior is NOT reproduced"
    lines.append(f"{verdict}: means at most {max(np.abs(apart)):.2f} sd apart, R-hat at most {max(rhats):.3f}.")
    return "\n".join(lines), agrees


def plot(draws: np.ndarray):
    """A matplotlib figure: the data in the posterior predictive bands, hare above lynx."""
    from matplotlib.figure import Figure  # not pyplot: no display is needed, no global state touched

    times, (low, low_half, median, high_half, high) = predict(draws, [0.05, 0.25, 0.5, 0.75, 0.95])
    figure = Figure(figsize=(9, 6.5), dpi=150, layout="constrained")
    figure.suptitle("The Hudson's Bay Company's pelts and the Lotka-Volterra model fitted to them")
    panels = figure.subplots(2, 1, sharex=True)
    for k, (animal, colour) in enumerate({"Hare": "#1f6f8b", "Lynx": "#b5532a"}.items()):
        axes, band = panels[k], dict(color=colour, lw=0)
        axes.fill_between(times, low[:, k], high[:, k], alpha=0.15, label="90% of predictions", **band)
        axes.fill_between(times, low_half[:, k], high_half[:, k], alpha=0.3, label="50%", **band)
        axes.plot(times, median[:, k], color=colour, lw=1.8, label="median")
        axes.plot(YEARS, PELTS[:, k], "o", color="black", ms=5, mec="white", mew=0.7, label="collected")
        axes.set_title(animal, loc="left", fontweight="bold", color=colour)
        axes.set_ylabel("thousands of pelts")
        axes.set_ylim(bottom=0)
        axes.grid(color="0.9", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, frameon=False, ncols=4)
    panels[-1].set(xticks=YEARS[::2], xlim=(YEARS[0] - 0.3, YEARS[-1] + 0.3))
    return figure


def main() -> int:
    """The command line: fit, print the table, write the plot. Exit status 1 if the posterior is another."""
    parser = argparse.ArgumentParser(prog="python -m demo.lotka_volterra", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1000, help="iterations to adapt in, of each chain")
    parser.add_argument("--draws", type=int, default=1000, help="iterations to keep, of each chain")
    parser.add_argument("--output", type=Path, default=HERE / "output" / "lotka_volterra.png", help="the plot")
    options = parser.parse_args()

    samples = fit(options.seed, chains=options.chains, warmup=options.warmup, draws=options.draws)
    table, agrees = report(samples)
    print(f"\nPosterior mean (standard deviation)\n\n{table}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    plot(samples.draws).savefig(options.output)
    print(f"Plot: {options.output}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
