"""What the sentences about a profile promise is what happens."""

import dataclasses
import re

import jax
import jax.numpy as jnp

import jupyter_jaxcb as jaxcb
from tests.interface import PartKind, to_text


def said(profiled, kind):
    """What is said of a profile if the parts of one kind took 10 us each, and nothing else time."""
    parts = [part for part in profiled.profile.parts if part.kind == kind]
    parts = tuple(part._replace(wall_ns=10_000 * part.times) for part in parts)
    alone = profiled.profile._replace(parts=parts, wall_ns=sum(part.wall_ns for part in parts))
    return to_text(dataclasses.replace(profiled.recording, profile=alone))


def test_expand_dims_makes_as_many_calls_as_the_sentence_says():
    calls = []

    def simulate(x):
        calls.append(x)
        return x * 2

    def run(method):
        step = jax.jit(jax.vmap(jaxcb.pure(simulate, result="x", vmap_method=method)))
        step(jnp.arange(7.0))
        calls.clear()
        with jaxcb.profile() as p:
            for n in range(3):
                step(jnp.arange(7.0) + n).block_until_ready()
        text = said(p, PartKind.HOST)
        return re.search(r"(\d+) calls of .* vmap makes one .*expand_dims' makes (\d+) ", text)

    made, promised = map(int, run("sequential").groups())
    assert made == len(calls) == 21
    assert run("expand_dims") is None
    assert promised == len(calls) == 3


def test_one_jit_around_small_programs_starts_one_program():
    def small(x):
        for _ in range(300):
            x = jnp.sin(x)
        return x

    words = "With one jax.jit around them it starts one"
    for f, name, started in ((small, "sin", 300), (jax.jit(lambda x: small(x)), "<lambda>", 1)):
        f(jnp.arange(3.0))
        with jaxcb.profile() as p:
            f(jnp.arange(3.0)).block_until_ready()
        found = [part for part in p.profile.parts if name in part.name and part.kind == "dispatch"]
        assert sum(part.times for part in found) == started
        assert (words in said(p, PartKind.DISPATCH)) == (f is small)
