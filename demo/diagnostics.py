"""Has a set of Markov chains converged, and how much is it worth? Split R-hat and effective sample size.

Both after Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and localization:
an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021). Plain NumPy and SciPy.
"""

import numpy as np
from scipy import stats


def split_rhat(draws: np.ndarray) -> float:
    """Rank-normalised split R-hat of `draws` (chains, iterations), the larger of bulk's and tails'.

    It is 1 when all chains are alike; the paper asks for less than 1.01.
    """
    folded = np.abs(draws - np.median(draws))
    return max(_rhat(_rank_normalise(_split(x))) for x in (draws, folded))


def effective_sample_size(draws: np.ndarray) -> float:
    """Bulk effective sample size of `draws` (chains, iterations): so many independent draws tell as much."""
    return _ess(_rank_normalise(_split(draws)))


def _split(draws: np.ndarray) -> np.ndarray:
    """Each chain cut into its first and its second half, so that drift within a chain shows as well."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normalise(draws: np.ndarray) -> np.ndarray:
    """Draws replaced by the normal scores of their ranks: no moments need exist."""
    ranks = stats.rankdata(draws).reshape(draws.shape)
    return stats.norm.ppf((ranks - 0.375) / (draws.size + 0.25))


def _variances(draws: np.ndarray) -> tuple[float, float]:
    """The mean variance within chains, and the estimate of the marginal variance from all of them."""
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    return within, within * (n - 1) / n + draws.mean(axis=1).var(ddof=1)


def _rhat(draws: np.ndarray) -> float:
    within, marginal = _variances(draws)
    return float(np.sqrt(marginal / within))


def _ess(draws: np.ndarray) -> float:
    chains, n = draws.shape
    within, marginal = _variances(draws)
    correlation = 1 - (within - _autocovariance(draws).mean(axis=0) * n / (n - 1)) / marginal
    correlation[0] = 1
    # Geyer (1992): sums of neighbours are positive and decrease in a reversible chain; what does not is
    # noise.
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    noise = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: noise[0]] if noise.size else pairs)
    total = chains * n
    # Antithetic chains may be worth more than independent draws, but no more than log10 of their number
    # times.
    return float(total / max(2 * pairs.sum() - 1, 1 / np.log10(total)))


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    """Autocovariance of each row at each lag (biased, divided by the length), by FFT."""
    n = draws.shape[1]
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), 2 * n, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n
