"""The exception of a compiled program's call has the user's frames that led to the bind."""

import inspect
import traceback

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb


def boom(x):
    raise ValueError("no luck")


bessel = jaxcb.pure(boom, result="x")
look = jaxcb.debug(boom)
log = jaxcb.debug(boom, queued=True)


def layer(x):
    return bessel(x) * 2


def model(x):
    return layer(x) + 1


def scanned(x):
    def body(carry, y):
        return carry, layer(y)

    return jax.lax.scan(body, 0.0, jnp.stack([x, x]))[1]


def looking(x):
    look(x)
    return x


def logging(x):
    log(x)
    return x


PROGRAMS = {
    "jit": (model, ["model", "layer"]),
    "jit of jit": (lambda x: jax.jit(lambda y: layer(y))(x), ["<lambda>", "<lambda>", "layer"]),
    "vmap": (lambda x: jax.vmap(model)(x[None]), ["<lambda>", "model", "layer"]),
    "scan": (scanned, ["scanned", "body", "layer"]),
    "debug": (looking, ["looking"]),
    "queued": (logging, ["logging"]),
}


def failing(program, *args):
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(program(*args))
        jax.effects_barrier()
    return jaxcb.host_error(caught.value)


def frames(error):
    """Return function, file, line and source of each frame."""
    return [
        (frame.name, frame.filename, frame.lineno, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
    ]


@pytest.mark.parametrize(("program", "names"), PROGRAMS.values(), ids=PROGRAMS)
def test_traceback_has_the_frames_of_the_program_and_of_the_host_function(program, names):
    found = frames(failing(jax.jit(program), jnp.float32(1)))
    assert [name for name, *_ in found] == [*names, "boom"]
    assert {file for _, file, *_ in found} == {__file__}
    lines = dict((name, line) for name, *_, line in found)
    assert lines.get("layer", "return bessel(x) * 2") == "return bessel(x) * 2"
    assert lines.get("model", "return layer(x) + 1") == "return layer(x) + 1"
    assert "^" not in "".join(
        traceback.format_tb(failing(jax.jit(program), 1.0).__traceback__)[:-1]
    )


def test_second_call_and_a_later_wait_show_the_same_frames():
    f = jax.jit(model)
    assert frames(failing(f, 1.0)) == frames(failing(f, 1.0))


def test_frames_of_an_exception_that_is_raised_again_are_those_of_its_last_call():
    again = ValueError("the same")

    def host(x):
        raise again

    host = jaxcb.pure(host, result="x")

    def first(x):
        return host(x)

    def second(x):
        return host(x)

    for program in (first, second, first):
        names = [name for name, *_ in frames(failing(jax.jit(program), 1.0))]
        assert [name for name in names if name != "host"] == [program.__name__]


def test_note_names_the_line_that_called_a_helper():
    error = failing(jax.jit(model), 1.0)
    line = model.__code__.co_firstlineno + 1
    at = f"bound at test_callers.py:{layer.__code__.co_firstlineno + 1}"
    assert f"{at}, called from test_callers.py:{line}, in call" in error.__notes__[0]
    assert "called from" not in failing(jax.jit(looking), 1.0).__notes__[0]


def test_frames_have_no_variables_and_no_caller():
    (outer, _), (inner, _), _ = traceback.walk_tb(failing(jax.jit(model), 1.0).__traceback__)
    assert outer.f_back is inner.f_back is None
    assert dict(outer.f_locals) == dict(inner.f_locals) == {}


@pytest.mark.kept
def test_frames_begin_and_stand_where_those_of_the_program_did():
    """Debuggers, pytest and IPython find the source of a frame by its first and current line."""
    (outer, line), (inner, _), _ = traceback.walk_tb(failing(jax.jit(model), 1.0).__traceback__)
    assert outer.f_lineno == line == model.__code__.co_firstlineno + 1
    for frame, function in ((outer, model), (inner, layer)):
        assert frame.f_code.co_firstlineno == function.__code__.co_firstlineno
        assert frame.f_code.co_qualname == function.__qualname__
        assert inspect.getsource(frame) == inspect.getsource(function)
