"""Hamiltonian Monte Carlo for any differentiable log density: ``grad``, ``vmap`` over chains, one ``jit``.

The method is that of R. Neal, "MCMC using Hamiltonian dynamics" (2011), with the step size tuned by dual
averaging (Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 15, 2014, section 3.2). The mass matrix is the
inverse of the covariance of the draws so far. Both are shared by all chains and adapted in the warm-up only.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TextIO

import numpy as np

import xform
import xform.numpy as jnp
from xform import lax, random

TARGET_ACCEPTANCE = 0.8
MAX_ENERGY_ERROR = 1000.0  # beyond it a trajectory has diverged


class StepSize(NamedTuple):
    """Dual averaging's state: logarithms of the step size and of its average, and what they derive from."""

    log: float
    log_average: float
    error: float  # average of (target - acceptance)
    count: float
    centre: float  # the logarithm that the search shrinks towards

    @classmethod
    def start(cls, size: float) -> "StepSize":
        """Search anew around ten times `size`: too large a step is found out sooner than too small a one."""
        return cls(*np.array([np.log(size), np.log(size), 0.0, 0.0, np.log(10 * size)]))

    def update(self, acceptance) -> "StepSize":
        """One step of dual averaging, with Hoffman and Gelman's constants (gamma 0.05, t0 10, kappa 0.75)."""
        count = self.count + 1
        error = self.error + (TARGET_ACCEPTANCE - acceptance - self.error) / (count + 10)
        log = self.centre - error * jnp.sqrt(count) / 0.05
        log_average = self.log_average + (log - self.log_average) * count**-0.75
        return StepSize(log, log_average, error, count, self.centre)


def transition(log_density: Callable, step_size, steps, scale, position, key):
    """One HMC transition of one chain from `position` (d,): leapfrog `steps` times, then accept or reject.

    Moves in coordinates in which the posterior's covariance is about one: position = `scale` (d, d) @
    coordinates. That is the same as a mass matrix, the inverse of scale @ scale.T. Returns the new position,
    the probability with which the trajectory's end was acceptable, and whether the trajectory diverged.
    """
    key_momentum, key_accept = random.split(key)
    value_and_gradient = xform.value_and_grad(log_density)

    def energy(value, momentum):
        return -value + 0.5 * jnp.sum(momentum**2)

    def leapfrog(_, state):
        q, p, _, gradient = state
        p = p + 0.5 * step_size * (scale.T @ gradient)
        q = q + step_size * (scale @ p)
        value, gradient = value_and_gradient(q)
        return q, p + 0.5 * step_size * (scale.T @ gradient), value, gradient

    momentum = random.normal(key_momentum, position.shape)
    value, gradient = value_and_gradient(position)
    q, p, new_value, _ = lax.fori_loop(0, steps, leapfrog, (position, momentum, value, gradient))
    error = energy(new_value, p) - energy(value, momentum)
    error = jnp.where(jnp.isnan(error), jnp.inf, error)
    acceptance = jnp.exp(jnp.minimum(0.0, -error))
    accepted = random.uniform(key_accept) < acceptance
    return jnp.where(accepted, q, position), acceptance, error > MAX_ENERGY_ERROR


def make_block(log_density: Callable, length: int, trajectory: float, max_steps: int) -> Callable:
    """The compiled function that takes all chains `length` transitions further.

    ``block(positions, step_size, scale, key, adapting)`` returns the last positions (chains, d), the
    `StepSize`, all positions (length, chains, d), acceptance probabilities and divergences (length, chains).
    Trajectories are about `trajectory` long in units of the posterior's standard deviations, by a number of
    steps that is jittered (by up to a half, so that no periodic orbit resonates) and the same in all chains.
    """

    @xform.jit
    def block(positions, step_size, scale, key, adapting):
        chains = positions.shape[0]
        move = xform.vmap(partial(transition, log_density), in_axes=(None, None, None, 0, 0))

        def iteration(carry, key):
            positions, step_size = carry
            key_steps, key_chains = random.split(key)
            size = jnp.exp(jnp.where(adapting, step_size.log, step_size.log_average))
            jitter = random.uniform(key_steps, minval=0.5, maxval=1.5)
            steps = jnp.clip(jnp.ceil(jitter * trajectory / size), 1, max_steps).astype(int)
            keys = random.split(key_chains, chains)
            positions, acceptance, diverged = move(size, steps, scale, positions, keys)
            updated = step_size.update(jnp.mean(acceptance))
            step_size = StepSize(*(jnp.where(adapting, new, old) for new, old in zip(updated, step_size, strict=True)))
            return (positions, step_size), (positions, acceptance, diverged)

        keys = random.split(key, length)
        (positions, step_size), history = lax.scan(iteration, (positions, step_size), keys)
        return positions, step_size, *history

    return block


@dataclass(frozen=True)
class Samples:
    """What `sample` found: `draws` (chains, iterations, d), and how the sampling went."""

    draws: np.ndarray
    acceptance: float
    divergences: int
    step_size: float
    seconds: float


def sample(
    log_density: Callable,
    initial: np.ndarray,
    spread: float,
    seed: int = 0,
    *,
    warmup: int = 1000,
    draws: int = 1000,
    blocks: int = 20,
    trajectory: float = 1.5,
    max_steps: int = 100,
    progress: TextIO | None = sys.stderr,
) -> Samples:
    """Draw from `log_density`, a function of an array (d,), one chain for each row of `initial` (chains, d).

    Parameters
    ----------
    spread
        A first guess of the posterior's standard deviations.
    warmup, draws
        Iterations of each chain that adapt step size and mass matrix and are thrown away, and that are kept.
        Rounded up to whole blocks, of which there are `blocks` in all: each is one call of one compiled
        function.
    trajectory, max_steps
        Mean length of a trajectory, in standard deviations, and the most leapfrog steps it may take.
    progress
        Where the progress bar goes; None for silence.
    """
    start = time.perf_counter()
    length = -(-(warmup + draws) // blocks)
    warmup_blocks, total_blocks = -(-warmup // length), -(-warmup // length) + -(-draws // length)
    block = make_block(log_density, length, trajectory, max_steps)
    bar = ProgressBar(total_blocks, progress)

    positions, step_size, scale = initial, StepSize.start(0.1), spread * np.eye(initial.shape[1])
    kept, acceptances, divergences = [], [], 0
    for i, key in enumerate(random.split(random.key(seed), total_blocks)):
        adapting = i < warmup_blocks
        positions, step_size, history, acceptance, diverged = block(positions, step_size, scale, key, adapting)
        kept.append(np.asarray(history))
        if i < warmup_blocks - 1:
            # The later half of all draws so far estimates the covariance; the step size has to follow it.
            recent = np.concatenate(kept[len(kept) // 2 :])
            scale = factor_of_covariance(recent.reshape(-1, recent.shape[-1]), spread)
            step_size = StepSize.start(float(np.exp(step_size.log_average)))
        if not adapting:
            acceptances.append(np.mean(acceptance))
            divergences += int(np.sum(diverged))
        bar.show(i + 1, f"{'warm-up' if adapting else 'sampling'}, acceptance {np.mean(acceptance):.2f}")
    bar.close()
    return Samples(
        draws=np.concatenate(kept[warmup_blocks:]).swapaxes(0, 1),
        acceptance=float(np.mean(acceptances)),
        divergences=divergences,
        step_size=float(np.exp(step_size.log_average)),
        seconds=time.perf_counter() - start,
    )


def factor_of_covariance(draws: np.ndarray, spread: float) -> np.ndarray:
    """The Cholesky factor of the covariance of `draws` (n, d), shrunk a little as Stan does it.

    So few draws, or so many rejections, that the covariance is singular then still give a factor.
    """
    n, d = draws.shape
    return np.linalg.cholesky((n * np.cov(draws, rowvar=False) + 5e-3 * spread**2 * np.eye(d)) / (n + 5))


class ProgressBar:
    """A bar that redraws itself on a terminal; elsewhere (a file, a notebook) one sign for each step."""

    def __init__(self, total: int, stream: TextIO | None, width: int = 40):
        self.total, self.stream, self.width = total, stream, width
        self.redraws = stream is not None and stream.isatty()

    def show(self, done: int, note: str) -> None:
        """`done` of `total` steps are done; `note` stands behind the bar."""
        if self.redraws:
            filled = self.width * done // self.total
            self._write(f"\r\033[K[{'=' * filled:{self.width}}] {100 * done // self.total:3d}%  {note}")
        else:
            self._write("=" if done > 1 else "[=")

    def close(self) -> None:
        """End the line."""
        self._write("\n" if self.redraws else "]\n")

    def _write(self, text: str) -> None:
        if self.stream is not None:
            self.stream.write(text)
            self.stream.flush()
