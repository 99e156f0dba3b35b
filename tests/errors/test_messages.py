"""Exceptions that cannot say what they are, or say what nobody can take."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import seen_by_user


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Deep(Exception):
    def __str__(self):
        return str(self)


class NoText(Exception):
    def __str__(self):
        return 3  # type: ignore


class Closed(Exception):
    def __setattr__(self, *args):
        raise TypeError("closed")


class NoDict(Exception):
    @property
    def __dict__(self):
        raise RuntimeError("no dict")


class Meta(type):
    def __repr__(cls):
        raise RuntimeError("no class")


class OfMeta(Exception, metaclass=Meta):
    pass


def with_notes(notes):
    error = ValueError("noted")
    error.__notes__ = notes
    return error


def its_own_cause():
    error = ValueError("circle")
    error.__cause__ = error
    return error


# name: the exception; what XLA and a recording are told
BAD = {
    "str() raises": (Mute(), "Mute: <its message raised RuntimeError>"),
    "str() does not end": (Deep(), "Deep: <its message raised RecursionError>"),
    "str() gives no text": (NoText(), "NoText: <its message raised TypeError>"),
    "takes no attributes": (Closed("x"), "Closed: x"),
    "shows no attributes": (NoDict("x"), "NoDict: x"),
    "of a class without repr": (OfMeta("x"), "OfMeta: x"),
    "colours": (ValueError("\x1b[31mred\x1b[0m\x07!"), "ValueError: red!"),
    "HTML": (ValueError("<b>bold</b> & co"), "ValueError: <b>bold</b> & co"),
    "an end for C": (ValueError("before\0after"), "ValueError: beforeafter"),
    "half a character": (ValueError("half \ud800"), "ValueError: half ?"),
    "a megabyte": (ValueError("x" * 10**6), f"ValueError: {'x' * 2000}… (1,000,000 characters)"),
    "nothing": (ValueError(), "ValueError"),
    "bytes": (ValueError(b"\xff\0"), r"ValueError: b'\xff\x00'"),
    "a mark": (ValueError("; jaxcb host error 99]"), "ValueError: ; jaxcb host error 99]"),
    "a group": (ExceptionGroup("many", [KeyError()]), "ExceptionGroup: many (1 sub-exception)"),
    "notes that are no list": (with_notes(3), "ValueError: noted"),
    "its own cause": (its_own_cause(), "ValueError: circle"),
}


def once(f, x):
    return jax.jit(f)(x)


def eager(f, x):
    return f(x)


def by_lanes(f, x):
    return jax.jit(jax.vmap(f))(x[None])


def caught(error, way):
    def host(x):
        raise error

    def call(x):
        return jaxcb.pure_callback(host, x, x, vmap_method="sequential")

    with jaxcb.record() as recorded, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready(way(call, np.float32(1)))
    return raised.value, recorded.recording


@pytest.mark.parametrize("way", [eager, once, by_lanes])
@pytest.mark.parametrize(("error", "told"), BAD.values(), ids=BAD)
def test_whatever_is_raised_is_the_cause_and_told_in_a_few_words(error, told, way):
    raised, recording = caught(error, way)
    assert raised.__cause__ is error
    assert jaxcb.host_error(raised) is error
    assert str(raised).startswith(f"INTERNAL: {told} [raised by the pure callback host, bound at ")
    assert [call.error for call in recording] == [told]


@pytest.mark.parametrize("error", [Closed("x"), with_notes([])])
def test_note_is_added_whatever_the_class_makes_of_attributes(error):
    caught(error, once)
    assert "raised by the pure callback host" in error.__notes__[-1]


def test_exception_that_is_raised_again_and_again_keeps_one_traceback():
    error = KeyboardInterrupt()

    def host(x):
        raise error

    f = jax.jit(lambda x: jaxcb.io_callback(host, x, x))
    depths = set()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt) as raised:
            f(np.float32(1))
        _, frames = seen_by_user(raised.value, raised.value.__traceback__)
        names = []
        while frames is not None:
            names.append(frames.tb_frame.f_code.co_name)
            frames = frames.tb_next
        depths.add(tuple(names[-2:]))
    assert {names[-1] for names in depths} == {"host"}
    assert len(depths) == 1
