"""JAX: a small network trained with jit, a scan, copies to and fro."""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments

SIZES = (256, 1024, 1024, 10)


def start(key):
    keys = jax.random.split(key, len(SIZES))
    return [
        (jax.random.normal(k, (m, n)) * 0.02, jnp.zeros(n))
        for k, m, n in zip(keys, SIZES, SIZES[1:])
    ]


def loss(weights, images, labels):
    for w, b in weights[:-1]:
        images = jax.nn.relu(images @ w + b)
    logits = images @ weights[-1][0] + weights[-1][1]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(labels.shape[0]), labels])


@partial(jax.jit, donate_argnums=0)
def step(weights, images, labels):
    gradients = jax.grad(loss)(weights, images, labels)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


@jax.jit
def running(state, rows):
    return jax.lax.scan(lambda carry, row: (carry * 0.9 + row, carry.sum()), state, rows)


def main():
    jax.block_until_ready(jnp.zeros(1))
    moments.at("start")
    chooser = np.random.default_rng(0)
    weights = start(jax.random.key(0))
    kept = []
    for index in range(30):
        rows = 32 * (1 + index % 4)
        images = jnp.asarray(chooser.normal(size=(rows, SIZES[0])).astype(np.float32))
        labels = jnp.asarray(chooser.integers(0, 10, rows))
        weights = step(weights, images, labels)
        state, sums = running(jnp.zeros(SIZES[0]), images)
        kept.append(np.asarray(sums))
        if index % 10 == 0:
            kept.append(jax.device_put(chooser.normal(size=(1 << 20,)).astype(np.float32)))
    jax.block_until_ready((weights, state))
    moments.at("peak")
    del weights, kept, state, images
    moments.at("end")
    moments.write()


main()
