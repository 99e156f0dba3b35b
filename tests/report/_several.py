"""Recordings for several tests, among them one with every kind of fact that exporters write."""

import functools
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import (
    MIME_TYPE,
    VMAP_METHODS,
    Aval,
    Compilation,
    Frame,
    LoweredSite,
    Program,
    Recorder,
    Recording,
    Site,
    VmapLevel,
    export,
    record_call,
    record_elements,
    summarize,
    to_mimebundle,
)

BESSEL = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source='bessel(1, "é")')
LOG = Site("io", "log", "/a/model, old.py", 9, 0, cell=False, source="log(i)",
           callers=(Frame("main", "/a/model, old.py", 20),))  # fmt: skip
FAILED = 'ValueError: a "quoted", <b>bold</b>\nsecond line \ud800'


def f32(*shape):
    return Aval(shape, "float32")


def level(size, method, batched=()):
    """Return what a vmap did, by the name of its method."""
    return VmapLevel(size, VMAP_METHODS[method], batched)


def called(*facts, error=None, **more):
    """Return a recording of one call of each of these, 1 ns long."""
    recorder = Recorder(clock=lambda: 0)
    for fact in facts:
        recorder.lowered(fact)
        record_call(recorder, fact, 1, 0, 1, error)
    return recorder.freeze(**more)


def data_of(recording, **options):
    """Return what a notebook saves of a recording: the data, and the metadata."""
    return tuple(one[MIME_TYPE] for one in to_mimebundle(recording, **options))


def recorded(elements=3):
    recorder = Recorder(clock=lambda: 0, capacity=10**6)
    program, z = Program("jit_f", "cpu", 4), f32(5)
    eager = LoweredSite(BESSEL, None, -1, (z,), (z,), device="cpu:1")
    single = LoweredSite(BESSEL, program, 0, (z,), (z,))
    looped = LoweredSite(LOG, program, 1, (Aval((elements,), "int32"),), (),
                         (level(elements, "sequential", (True,)),))  # fmt: skip
    for fact in (single, looped):
        recorder.lowered(fact)
    recorder.add_compilation(Compilation(program, 1, (z,), 2_000, 30_000, end_ns=90_500))
    record_call(recorder, single, 1, 100_000, 300_000)
    record_call(recorder, eager, 1, 150_000, 160_001)  # inside the one before, as a nested call
    record_call(recorder, single, 2, 400_000, 401_000, FAILED)
    stamps = list(range(500_000, 500_000 + 1_000 * (elements + 1), 1_000))
    record_elements(recorder, looped, 1, np.arange(elements), stamps)
    return recorder.freeze(cells=["<cell>"], environment={"jax": "0.0", "backend": "cpu"})


SEVERAL = recorded()
recordings = pytest.mark.parametrize("recording", [Recording(), SEVERAL], ids=["empty", "several"])


def saved(recording, tmp_path, suffix):
    path = tmp_path / f"recording{suffix}"
    export(recording, path)
    return path.read_bytes()


def module(source, file="model.py"):
    """Return the names that `source` defines when it is imported from `file`."""
    names = {"jax": jax, "jnp": jnp, "np": np, "jaxcb": jaxcb, "functools": functools}
    exec(compile(textwrap.dedent(source), file, "exec"), names)
    return names


def recording_of(source, run, *args, **more):
    names = module(source) | more
    with jaxcb.record() as r:
        jax.block_until_ready(eval(compile(run, "run.py", "eval"), names))
        jax.effects_barrier()
    return r.recording


def rows(recording):
    return {row.where: f"{row.status.words} {row.calls}" for row in summarize(recording)}
