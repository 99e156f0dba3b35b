"""Compare masked calls with calls for all batch elements, and with the same function unmasked.

    make bench

Interleaved runs in one process.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from ._interleaved import LOOP, identity, medians, run, show

ELEMENTS = 10_000
NEEDED = 100
WIDE = 500  # numbers in each batch element of a function that gets them together


def simulate(x):
    """A short host function: about 10 µs."""
    return np.cumsum(np.sin(x)).astype(x.dtype)


def pair(callback, x):
    """The masked program and the program that calls for all elements, and their arguments."""
    mask = np.arange(len(x)) % (len(x) // NEEDED) == 0
    masked = jax.jit(jax.vmap(lambda mask, x: callback.where(mask, x, otherwise=0)))
    every = jax.jit(jax.vmap(lambda mask, x: jnp.where(mask, callback(x), 0)))
    return (masked, (mask, x)), (every, (mask, x))


def called(program, given):
    return lambda: run(lambda arguments: program(*arguments), given)


def row(name, goal, variants, rounds, unit=1e3, word="ms"):
    """One row; the program of the first variant is compared with that of the second."""
    times = medians({name: called(*one) for name, one in variants.items()}, rounds)
    first, second = (seconds * unit for seconds in times.values())
    return name, f"{first / second:.3f}", goal, f"{first:.2f} / {second:.2f} {word}"


def rows(rounds):
    looped = jaxcb.pure(simulate, result="x")
    x = np.ones((ELEMENTS, 8), np.float32)
    masked, every = pair(looped, x)
    yield row(
        f"{ELEMENTS:,} elements of which {NEEDED} are needed / all of them",
        "<= 0.05", {"masked": masked, "all": every}, max(rounds // 3, 3),
    )  # fmt: skip
    together = jaxcb.pure(np.sin, result="x", vmap_method="expand_dims")
    x = np.ones((ELEMENTS, WIDE), np.float32)
    masked, every = pair(together, x)
    yield row(
        f"the same with expand_dims, {WIDE} numbers each",
        "", {"masked": masked, "all": every}, rounds,
    )  # fmt: skip
    plain = jaxcb.pure(identity, result="x")
    x, needed = np.ones(ELEMENTS, np.float32), np.ones(ELEMENTS, bool)
    variants = {
        "masked": (jax.jit(jax.vmap(lambda m, x: plain.where(m, x, otherwise=0))), (needed, x)),
        "all": (jax.jit(jax.vmap(lambda m, x: plain(x))), (needed, x)),
    }
    yield row(f"all {ELEMENTS:,} elements needed / unmasked", "", variants, rounds)
    yield row(
        "a masked scalar call that is made / unmasked", "",
        {"masked": (scalar(lambda x: plain.where(x > 0, x, otherwise=0)), (1.0,)),
         "all": (scalar(plain), (1.0,))}, rounds, 1e6 / LOOP, "µs",
    )  # fmt: skip
    yield row(
        "a masked scalar call that is not made / unmasked", "",
        {"masked": (scalar(lambda x: plain.where(x < 0, x, otherwise=x)), (1.0,)),
         "all": (scalar(plain), (1.0,))}, rounds, 1e6 / LOOP, "µs",
    )  # fmt: skip


def scalar(call):
    return jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, lambda _, x: call(x), x))


if __name__ == "__main__":
    show(__doc__, rows)
