"""Exceptions whose message raises, or contains text that XLA or a terminal cannot take."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._vmap_methods import TOGETHER
from tests.interface import added_name, error_for_user


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


# name: (the exception, the text reported to XLA and in a recording)
BAD = {
    "str() raises": (Mute(), "Mute: <its message raised RuntimeError>"),
    "str() does not end": (Deep(), "Deep: <its message raised RecursionError>"),
    "str() gives no text": (NoText(), "NoText: <its message raised TypeError>"),
    "holds an exception without a message": (
        ValueError(Mute()),
        "ValueError: <its message raised RuntimeError>",
    ),
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


def by_elements(f, x):
    return jax.jit(jax.vmap(f))(x[None])


def caught(error, run):
    def host(x):
        raise error

    def call(x):
        return jaxcb.pure_callback(host, x, x, vmap_method="sequential")

    with jaxcb.record() as recorded, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready(run(call, np.float32(1)))
    return raised.value, recorded.recording


@pytest.mark.parametrize("run", [eager, once, by_elements])
@pytest.mark.parametrize(("error", "reported"), BAD.values(), ids=BAD)
def test_every_exception_is_the_cause_and_is_reported_briefly(error, reported, run):
    raised, recording = caught(error, run)
    assert raised.__cause__ is error
    assert jaxcb.host_error(raised) is error
    assert str(raised).startswith(
        f"INTERNAL: {reported} [raised by the pure callback host, bound at "
    )
    assert [call.error for call in recording] == [reported]


@pytest.mark.parametrize("error", [Closed("x"), with_notes([])])
def test_note_is_added_even_to_a_class_that_forbids_attributes(error):
    caught(error, once)
    assert "raised by the pure callback host" in error.__notes__[-1]


def test_exception_that_is_raised_repeatedly_keeps_one_traceback():
    error = KeyboardInterrupt()

    def host(x):
        raise error

    f = jax.jit(lambda x: jaxcb.io_callback(host, x, x))
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt) as raised:
            f(np.float32(1))
        _, frames = error_for_user(raised.value, raised.value.__traceback__)
        names = []
        while frames is not None:
            names.append(frames.tb_frame.f_code.co_name)
            frames = frames.tb_next
        assert (names[-1], names.count("<lambda>")) == ("host", 1)


def notes_of(flavor, method, run, arrays):
    def host(*buffers):
        raise ValueError("no luck")

    def call(*arrays):
        if flavor == "buffer":
            return jaxcb.buffer_callback(host, arrays[0], vmap_method=method)(*arrays)
        return jaxcb.pure_callback(host, arrays[0], *arrays, vmap_method=method)

    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready(jax.jit(run(call))(*arrays))
    return jaxcb.host_error(raised.value).__notes__


@pytest.mark.parametrize("flavor", ["pure", "buffer"])
@pytest.mark.parametrize("method", TOGETHER)
def test_note_on_a_batched_call_names_the_vmap_method(flavor, method):
    (note,) = notes_of(flavor, method, jax.vmap, [np.ones((4, 3), np.float32)])
    assert note.endswith(
        f"called with float32[4,3] for a batch (vmap_method={method!r}; 'sequential' calls each "
        "batch element alone)"
    )


@pytest.mark.parametrize(("masked", "gets"), [("where", "got the needed elements"), ("cond", "")])
def test_note_on_a_masked_batch_says_which_elements_it_got(masked, gets):
    def host(x):
        raise ValueError("no luck")

    call = jaxcb.pure(host, result="x", vmap_method="expand_dims")

    def program(x):
        if masked == "where":
            return call.where(x > 1, x, otherwise=0)
        return jax.lax.cond(x > 1, call, lambda x: x, x)

    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready(jax.vmap(program)(np.arange(4, dtype=np.float32)))
    (note,) = jaxcb.host_error(raised.value).__notes__
    words = f", of which it {gets}" * bool(gets)
    assert f" for a batch{words} (vmap_method=" in note


@pytest.mark.parametrize(("method", "run"), [("sequential", jax.vmap), ("expand_dims", jax.jit)])
def test_note_on_a_call_of_one_element_mentions_no_batch(method, run):
    (note,) = notes_of("pure", method, run, [np.ones((4, 3), np.float32)])
    assert "called with float32[" in note and "batch" not in note.rpartition("called with")[2]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.float32(np.nan), "float32[] = nan"),
        (np.arange(6, dtype=np.int32), "int32[6] = [0, 1, 2, 3, 4, 5]"),
        (np.zeros((2, 3), bool), "bool[2,3] = [False, False, False, False, False, False]"),
        (np.arange(7, dtype=np.int32), "int32[7]"),
    ],
)
def test_note_has_the_values_of_scalars_and_of_small_arrays(array, words):
    (note,) = notes_of("pure", "sequential", jax.jit, [array])
    assert note.endswith(f"called with {words}")


@pytest.mark.parametrize("options", [{}, {"executor": "threads:2"}])
def test_note_on_a_batch_element_has_its_own_values(options):
    def host(x, y):
        if x == 2:
            raise ValueError
        return x

    call = jaxcb.pure(host, result="x", **options)
    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.vmap(call, (0, None))(np.arange(4, dtype=np.float32), np.int32(7)).block_until_ready()
    (note,) = jaxcb.host_error(raised.value).__notes__
    assert note.endswith("in batch element 2, called with float32[] = 2, int32[] = 7")
    assert "= 2" not in str(raised.value), "the message of JAX is the same in every run"


def test_note_leaves_out_operands_that_a_capability_adds():
    class Numbered:
        __name__ = "numbered"
        _operand_names = "x", added_name("number of the call"), "y"

        def __call__(self, *operands):
            raise ValueError

    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        x = np.float32(1)
        jaxcb.pure_callback(Numbered(), x, x, 2, np.float32(3)).block_until_ready()
    (note,) = jaxcb.host_error(raised.value).__notes__
    assert note.endswith("called with float32[] = 1, float32[] = 3")


def test_note_on_a_buffer_function_has_no_values_which_it_may_have_overwritten():
    (note,) = notes_of("buffer", "sequential", jax.jit, [np.float32(3)])
    assert note.endswith("called with float32[]")


def test_note_has_no_value_of_an_argument_that_was_made_writable():
    def host(x):
        x.flags.writeable = True
        x[...] = 7
        raise ValueError

    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.jit(lambda x: jaxcb.io_callback(host, x, x))(1.0).block_until_ready()
    (note,) = jaxcb.host_error(raised.value).__notes__
    assert note.endswith("called with float32[]")


@pytest.mark.parametrize("write", [lambda x: x.sort(), lambda x: np.add(x, 1, out=x)])
@pytest.mark.parametrize("run", [eager, once])
def test_note_on_writing_into_an_argument_says_that_it_is_read_only(write, run):
    """Also check that following the advice works."""

    def host(x):
        write(x)
        return x

    def result(host):
        return run(lambda x: jaxcb.pure_callback(host, x, x), np.float32([2, 1]))

    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready(result(host))
    note = jaxcb.host_error(raised.value).__notes__[-1]
    assert note.startswith("the arguments of a host function are read-only")
    assert note.endswith("write into a copy, x.copy()")
    expected = np.float32([2, 1])
    write(expected)
    np.testing.assert_array_equal(result(lambda x: host(x.copy())), expected)
