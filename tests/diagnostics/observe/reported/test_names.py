"""Host functions with odd attributes still work when observed, and their names are strings."""

import contextlib
import unittest.mock

import jax
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, double_into, one
from tests.interface import summarize, to_text


class Odd:
    def __call__(self, *args):
        if len(args) == 3:
            return double_into(*args)
        return np.float32(1)


class ReturnsItself(Odd):
    def __getattr__(self, name):
        return self


class ReturnsAnother(Odd):
    def __getattr__(self, name):
        return ReturnsAnother()


class Raises(Odd):
    def __getattr__(self, name):
        raise KeyError(name)


class RaisesAlways(Odd):
    def __getattribute__(self, name):
        raise ValueError(name)


class RaisesItsClass(Odd):
    @property
    def __class__(self):
        raise ValueError("class")


class NamedByANumber(Odd):
    __name__ = 3


class NamedByAnArray(Odd):
    __name__ = np.arange(3)


class Wrapped(Odd):
    def __init__(self):
        self.__wrapped__ = self


class Text(str):
    def __str__(self):
        raise ValueError("str")


class NamedByOddText(Odd):
    __name__ = Text("odd")


ODD = {
    kind.__name__: kind
    for kind in (
        ReturnsItself, ReturnsAnother, Raises, RaisesAlways, RaisesItsClass, NamedByANumber,
        NamedByAnArray, Wrapped, NamedByOddText,
    )
}  # fmt: skip
BINDS = {
    "pure": lambda host, x: jax.pure_callback(host, STRUCT, x),
    "io": lambda host, x: io_callback(host, STRUCT, x),
    "debug": lambda host, x: jax.debug.callback(host, x),
    "buffer": lambda host, x: buffer_callback(host, STRUCT)(x),
}


def outcome(run):
    """Return the result of ``run()``, or the class of the error it raises."""
    try:
        result = jax.block_until_ready(run())
        jax.effects_barrier()
        return np.asarray(result).tolist()
    except Exception as error:
        return type(error)


# JAX reads the class of buffer callbacks, which raises for these.
RAISE_IN_BUFFER = {"RaisesAlways", "RaisesItsClass"}
CASES = [
    (odd, flavor)
    for odd in ODD
    for flavor in BINDS
    if flavor != "buffer" or odd not in RAISE_IN_BUFFER
]


@pytest.mark.long
@pytest.mark.parametrize(("odd", "flavor"), CASES)
def test_odd_callback_behaves_the_same_and_has_a_name(odd, flavor):
    host = ODD[odd]()

    def runs():
        f = jax.jit(lambda x: BINDS[flavor](host, x))
        return outcome(lambda: f(one())), outcome(lambda: BINDS[flavor](host, one()))

    plain = runs()
    jax.clear_caches()
    with jaxcb.observe_jax() as r:
        assert runs() == plain
    names = {s.site.function for s in summarize(r.recording)}
    worked = [result for result in plain if not isinstance(result, type)]
    assert names == ({"odd" if odd == "NamedByOddText" else odd} if worked else set())
    assert len(r.recording) == len(worked)
    assert type(r.recording).from_json(r.recording.to_json())
    assert to_text(r.recording).isprintable() or worked


@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_callback_of_a_program_compiled_before_behaves_the_same(odd, flavor):
    host = ODD[odd]()
    f = jax.jit(lambda x: BINDS[flavor](host, x))
    plain = outcome(lambda: f(one()))
    with jaxcb.observe_jax() as r:
        assert outcome(lambda: f(one())) == plain
    assert len(r.recording) == (not isinstance(plain, type))
    assert to_text(r.recording) is not None


def test_observing_leaves_no_trace_in_the_calls_of_a_mock():
    host = unittest.mock.Mock(return_value=np.float32(1))
    for around in (contextlib.nullcontext, jaxcb.observe_jax):
        with around():
            jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(host, STRUCT, x))(one()))
    assert host.call_count == 2
    assert len(host.mock_calls) == 2
