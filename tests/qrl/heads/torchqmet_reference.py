"""The documented forward pass of torchqmet, from the state dict alone: one pair at a time, with numpy."""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
State = dict[str, Array]
Distance = Callable[[State, Array, Array], float]


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def maxmean(state: State, components: Array) -> float:
    alpha = float(sigmoid(state["reduction.raw_alpha"]))
    return float(alpha * components.max() + (1 - alpha) * components.mean())


def deep_linear(state: State, name: str) -> Array:
    product: Array = reduce(np.matmul, [state[f"{name}.mats.{index}"] for index in range(4)]) + state[f"{name}.bias"]
    return product


def iqe(intervals: int, reduce_components: Callable[[State, Array], float] = maxmean) -> Distance:
    def length(u: Array, v: Array) -> float:
        """Count every gap between neighbouring ends that some interval covers."""
        ends = np.sort(np.concatenate([u, v]))
        return float(sum(b - a for a, b in pairwise(ends) if np.any((u <= a) & (b <= v))))

    def distance(state: State, u: Array, v: Array) -> float:
        parts = zip(u.reshape(-1, intervals), v.reshape(-1, intervals), strict=True)
        return reduce_components(state, np.array([length(a, b) for a, b in parts]))

    return distance


def mrn(power: int) -> Distance:
    def project(state: State, name: str, x: Array) -> Array:
        hidden = relu(state[f"{name}.0.weight"] @ x + state[f"{name}.0.bias"])
        projected: Array = state[f"{name}.2.weight"] @ hidden + state[f"{name}.2.bias"]
        return projected

    def distance(state: State, u: Array, v: Array) -> float:
        difference = project(state, "sym_proj", u) - project(state, "sym_proj", v)
        residual = project(state, "asym_proj", u) - project(state, "asym_proj", v)
        return float(np.mean(difference**2) ** (power / 2) + relu(residual).max())

    return distance


def concave(state: State, components: Array) -> Array:
    slopes = 2 * sigmoid(state["transforms.0.raw_ms"])
    offsets = np.concatenate(
        [state["transforms.0.bs_first_constant"], softplus(state["transforms.0.raw_bs_after_first"])], 1
    )
    lowest: Array = (slopes * components[:, None] + offsets).min(1)
    return lowest


def max_relu(state: State, layer: int, x: Array) -> Array:
    """ReLU where the state dict has no weights for this layer."""
    raw = state.get(f"activations.{layer}.raw_weights")
    if raw is None:
        return relu(x)
    pairs = x.reshape(-1, 2)
    return np.concatenate([pairs.max(1), relu(pairs * softplus(raw)).mean(1)])


def deep_norm(state: State, u: Array, v: Array) -> float:
    h = max_relu(state, 0, state["u0.weight"] @ (u - v))
    for layer in range(sum(key.startswith("ws_after_first") for key in state)):
        weights = relu(state[f"ws_after_first.{layer}.weight"])
        h = max_relu(state, layer + 1, weights @ h + state[f"us_after_first.{layer}.weight"] @ (u - v))
    return maxmean(state, concave(state, h))


def wide_norm(state: State, u: Array, v: Array) -> float:
    rows = relu(state["w.weight"]) @ relu(np.concatenate([u - v, v - u]))
    num_components = len(state["transforms.0.raw_ms"])
    return maxmean(state, concave(state, np.linalg.norm(rows.reshape(num_components, -1), axis=1)))


def weighted_sum(state: State, components: Array) -> float:
    return float(deep_linear(state, "reduction.alpha_net")[0] ** 2 @ components)


def discounted(discount: float) -> Callable[[State, Array], float]:
    """The logarithm, to the base of the discount, of the discounted distance that torchqmet returns."""

    def distance(state: State, components: Array) -> float:
        bases = sigmoid(deep_linear(state, "reduction.beta_net")[:, 0])
        return float(np.log(np.prod(bases**components)) / np.log(discount))

    return distance


def pqe_lh(processes: int, reduce_components: Callable[[State, Array], float]) -> Distance:
    def distance(state: State, u: Array, v: Array) -> float:
        exponents = relu(u - v).reshape(-1, processes).mean(1)
        return reduce_components(state, 1 - np.exp(-exponents))

    return distance


def pqe_gg(processes: int, reduce_components: Callable[[State, Array], float]) -> Distance:
    line = np.linspace(-12, 12, 48_001)
    counts = np.arange(60)

    def mass(u: float, v: float, variance: float) -> float:
        """Of the region below the density of N(u, 1) and above that of N(v, 1), along the axis by N(0, variance)."""
        height = relu(stats.norm.pdf(line, u) - stats.norm.pdf(line, v))
        return float(np.trapezoid(height * stats.norm.pdf(line, 0, np.sqrt(variance)), line))

    def at_most(x: float, y: float) -> float:
        """P(Poisson(x) <= Poisson(y))"""
        return float(stats.poisson.cdf(counts, x) @ stats.poisson.pmf(counts, y))

    def distance(state: State, u: Array, v: Array) -> float:
        variances = np.exp(state["measure.log_sigma2"]).ravel()
        only_u, only_v = (
            np.array([mass(*pair) for pair in zip(*ends, variances, strict=True)]) for ends in ((u, v), (v, u))
        )
        weights = deep_linear(state, "measure.scales_net") ** 2 / processes
        pairs = zip(weights @ only_u, weights @ only_v, strict=True)
        race = np.array([at_most(x, y) for x, y in pairs]).reshape(-1, processes)
        return reduce_components(state, 1 - race.prod(1))

    return distance


def random_state(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {key: 0.5 * generator.standard_normal(shape) for key, shape in shapes.items()}
