"""Host functions in the queue and in threads see the context variables of the crossing."""

import contextvars

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.kept
LEVEL = contextvars.ContextVar("LEVEL", default="lost")
OPTIONS = {
    "plain": {},
    "queued": {"queued": True},
    "threads": {"executor": "threads:2"},
    "threads, timeout": {"executor": "threads:2", "timeout": 60},
    "queued, threads": {"queued": True, "executor": "threads:2"},
}


def looks(options):
    seen = []

    def look(x):
        seen.append((LEVEL.get(), np.geterr()["divide"]))

    return jaxcb.io(look, result=None, **OPTIONS[options]), seen


PROGRAMS = {
    "eager": lambda f: f(np.float32(1)),
    "jit": lambda f: jax.jit(f)(np.float32(1)),  # an operand that is ready
    "vmap": lambda f: jax.jit(jax.vmap(f))(np.arange(4, dtype=np.float32)),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_host_function_sees_the_context_of_the_thread_that_calls_the_program(options, program):
    f, seen = looks(options)
    run = PROGRAMS[program]
    for level in ("one", "two"):
        seen.clear()
        token = LEVEL.set(level)
        with np.errstate(divide="raise"):
            run(f)
        LEVEL.reset(token)
        jax.effects_barrier()
        assert set(seen) == {(level, "raise")}
    assert np.geterr()["divide"] != "raise"


def test_what_a_host_function_sets_stays_in_its_call():
    def sets(x):
        LEVEL.set("set by the host function")

    jax.jit(jaxcb.io(sets, result=None, queued=True))(np.float32(1))
    jax.effects_barrier()
    look, seen = looks("queued")
    jax.jit(look)(np.float32(1))
    jax.effects_barrier()
    assert [level for level, _ in seen] == ["lost"]
