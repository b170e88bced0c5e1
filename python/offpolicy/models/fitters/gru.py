"""A gated recurrent unit (Cho et al. 2014), a small network, and Adam (Kingma & Ba 2015), in JAX on the CPU:

    z = σ(W_z x + U_z h + b_z)    u = σ(W_u x + U_u h + b_u)    c = tanh(W_c x + U_c (u h) + b_c)    h' = (1-z) h + z c

Only the fitter `recurrent` imports this module. Arguments and results are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Network = dict[str, Array]
Dense = list[tuple[Array, Array]]


@dataclass(frozen=True)
class Fit:
    """The parameters of a fit; the same seed gives the same network."""

    hidden: int
    epochs: int
    batch: int
    learning_rate: float
    seed: int

    def q_function(
        self, inputs: Array, actions: NDArray[np.int32], count: int, targets: Array, mask: NDArray[np.bool_]
    ) -> Network:
        """Fit the network whose Q(h_t, a_t) is nearest to the targets; arrays are (episodes, steps, …)."""

        def loss(network: Any, x: Any, a: Any, y: Any, m: Any) -> Any:
            q = jnp.take_along_axis(_q(network, x), a[..., None], axis=2)[..., 0]
            return (m * (q - y) ** 2).sum() / jnp.maximum(m.sum(), 1)

        rng = np.random.default_rng(self.seed)
        k, h = inputs.shape[2], self.hidden
        start = {
            "x": _normal(rng, k, 3 * h),
            "h": _normal(rng, h, 3 * h),
            "b": np.zeros(3 * h, dtype=np.float32),
            "v": _normal(rng, h, 1),
            "v_b": np.zeros(1, dtype=np.float32),
            "a": np.zeros((h, count), dtype=np.float32),
            "a_b": np.zeros(count, dtype=np.float32),
        }
        network: Network = self._adam(loss, start, rng, self.batch, inputs, actions, targets, mask.astype(np.float32))
        return network

    def regression(self, x: Array, y: Array) -> Dense:
        """Fit a network of two hidden layers whose outputs are nearest to the rows of y."""

        def loss(layers: Any, x: Any, y: Any, m: Any) -> Any:
            for w, b in layers[:-1]:
                x = jnp.tanh(x @ w + b)
            w, b = layers[-1]
            return (m[:, None] * (x @ w + b - y) ** 2).sum() / jnp.maximum(m.sum(), 1)

        rng = np.random.default_rng(self.seed)
        sizes = [x.shape[1], self.hidden, self.hidden, y.shape[1]]
        start = [(_normal(rng, n, m), np.zeros(m, dtype=np.float32)) for n, m in pairwise(sizes)]
        layers: Dense = self._adam(loss, start, rng, 8 * self.batch, x, y, np.ones(len(x), dtype=np.float32))
        return layers

    def _adam(
        self, loss: Callable[..., Any], network: Any, rng: np.random.Generator, batch: int, *data: NDArray[Any]
    ) -> Any:
        """Minimise a loss over batches of rows; the last of `data` is a mask."""
        n = len(data[0])
        batch = min(batch, n)
        rounds = -(-n // batch)
        orders = np.full((self.epochs, rounds * batch), n)  # row n is zero and pads the last batch
        orders[:, :n] = [rng.permutation(n) for _ in range(self.epochs)]
        rows = orders.reshape(-1, batch)
        rates = self.learning_rate * np.linspace(1, 0, len(rows), endpoint=False)  # rates fall to 0

        def update(state: Any, now: Any) -> Any:
            (network, mean, square, t), (chosen, rate) = state, now
            slope = jax.grad(loss)(network, *(part[chosen] for part in padded))
            mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
            square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, slope)
            one, two = 1 - 0.9**t, 1 - 0.999**t
            network = jax.tree.map(
                lambda w, m, s: w - rate * (m / one) / (jnp.sqrt(s / two) + 1e-8), network, mean, square
            )
            return (network, mean, square, t + 1), None

        with jax.default_device(jax.devices("cpu")[0]):
            padded = [jnp.concatenate([part, np.zeros_like(part[:1])]) for part in data]
            none = jax.tree.map(np.zeros_like, network)
            start = jax.tree.map(jnp.asarray, (network, none, none, 1.0))
            (network, *_), _ = jax.jit(lambda s, x: jax.lax.scan(update, s, x))(start, (rows, rates.astype(np.float32)))
        return jax.tree.map(np.asarray, network)


def q_values(network: Network, inputs: Array) -> Array:
    """Return Q(h_t, ·) of histories, (episodes, steps, actions)."""
    return np.array(jax.jit(_q)(network, inputs))


def advantages(network: Network, inputs: Array) -> Array:
    """Return A(h_t, ·) of histories, (episodes, steps, actions)."""
    return np.array(jax.jit(lambda n, x: _hidden(n, x) @ n["a"] + n["a_b"])(network, inputs))


def _q(network: Any, inputs: Any) -> Any:
    h = _hidden(network, inputs)
    return h @ network["v"] + network["v_b"] + h @ network["a"] + network["a_b"]


def _hidden(network: Any, inputs: Any) -> Any:
    size = network["h"].shape[0]
    u_gates, u_candidate = network["h"][:, : 2 * size], network["h"][:, 2 * size :]

    def cell(h: Any, x: Any) -> Any:
        z, u = jnp.split(jax.nn.sigmoid(x[:, : 2 * size] + h @ u_gates), 2, axis=1)
        c = jnp.tanh(x[:, 2 * size :] + (u * h) @ u_candidate)
        h = (1 - z) * h + z * c
        return h, h

    x = jnp.swapaxes(inputs @ network["x"] + network["b"], 0, 1)
    _, h = jax.lax.scan(cell, jnp.zeros((inputs.shape[0], size), dtype=inputs.dtype), x)
    return jnp.swapaxes(h, 0, 1)


def _normal(rng: np.random.Generator, n: int, m: int) -> Array:
    return rng.normal(scale=n**-0.5, size=(n, m)).astype(np.float32)
