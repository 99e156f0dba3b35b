"""Callbacks with odd attributes work unchanged, and get a name that is text."""

import contextlib
import unittest.mock

import jax
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize, to_text
from tests.diagnostics.observe._own import STRUCT, double_into, one


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
WAYS = {
    "pure": lambda host, x: jax.pure_callback(host, STRUCT, x),
    "io": lambda host, x: io_callback(host, STRUCT, x),
    "debug": lambda host, x: jax.debug.callback(host, x),
    "buffer": lambda host, x: buffer_callback(host, STRUCT)(x),
}


def tried(run):
    """What comes of it: the result, or the class of the error."""
    try:
        result = jax.block_until_ready(run())
        jax.effects_barrier()
        return np.asarray(result).tolist()
    except Exception as error:
        return type(error)


# JAX asks buffer callbacks for their class, and says what comes of it.
ASKED = {"RaisesAlways", "RaisesItsClass"}
ODD_WAYS = [(odd, way) for odd in ODD for way in WAYS if way != "buffer" or odd not in ASKED]


@pytest.mark.parametrize(("odd", "way"), ODD_WAYS)
def test_odd_callback_does_what_it_does_and_has_a_name(odd, way):
    host = ODD[odd]()

    def runs():
        f = jax.jit(lambda x: WAYS[way](host, x))
        return tried(lambda: f(one())), tried(lambda: WAYS[way](host, one()))

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


@pytest.mark.parametrize("way", ["pure", "io", "debug"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_callback_of_a_program_compiled_before_is_called_as_ever(odd, way):
    host = ODD[odd]()
    f = jax.jit(lambda x: WAYS[way](host, x))
    plain = tried(lambda: f(one()))
    with jaxcb.observe_jax() as r:
        assert tried(lambda: f(one())) == plain
    assert len(r.recording) == (not isinstance(plain, type))
    assert to_text(r.recording) is not None


def test_mock_is_not_asked_for_what_it_would_remember():
    host = unittest.mock.Mock(return_value=np.float32(1))
    for around in (contextlib.nullcontext, jaxcb.observe_jax):
        with around():
            jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(host, STRUCT, x))(one()))
    assert host.call_count == 2
    assert len(host.mock_calls) == 2
