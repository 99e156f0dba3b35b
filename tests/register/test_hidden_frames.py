"""The error of a wrong registration points to the user's line, and what docstrings list."""

import os
import traceback

import jax
import pytest

import jupyter_jaxcb as jaxcb


def annotated(x) -> "not_there":  # noqa: F821
    return x


WRONG = {
    "no result": lambda: jaxcb.pure(lambda x: x),
    "annotation": lambda: jaxcb.pure(annotated),
    "method": lambda: jaxcb.pure(lambda x: x, result="x", vmap_method="parallel"),
    "derivative": lambda: jaxcb.pure(lambda x: x, result="x", derivative="exact"),
    "arrays": lambda: jaxcb.debug(print, arrays="torch"),
    "inferred": lambda: jaxcb.io(lambda x: x, result="infer"),
    "no function": lambda: jaxcb.buffer(3, result="x"),
    "twice": lambda: jaxcb.tap(jaxcb.tap(print)),
}


@pytest.mark.parametrize("register", WRONG.values(), ids=WRONG)
def test_error_of_a_wrong_registration_shows_no_frame_of_this_package(register):
    with pytest.raises((TypeError, ValueError)) as caught:
        register()
    shown = [
        frame.f_code.co_qualname
        for frame, _ in traceback.walk_tb(caught.tb)
        if "jupyter_jaxcb" in frame.f_globals["__name__"].split(".")[:1]
        and "__tracebackhide__" not in frame.f_locals
    ]
    assert shown == []


@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io])
def test_jaxs_traceback_before_a_transformation_shows_no_frame_of_this_package(register):
    """JAX makes these frames up, so they have no local variable `__tracebackhide__`."""
    noise = register(lambda x: x, result=lambda x: x)

    def loss(x):
        return jax.lax.fori_loop(0, 3, lambda i, v: v * noise(v), x)

    with pytest.raises(ValueError, match="cannot differentiate") as caught:
        jax.grad(loss)(1.0)
    noted = caught.value.__cause__
    assert type(noted).__name__ == "JaxStackTraceBeforeTransformation"
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(noted.__traceback__)]
    assert __file__ in files and not [
        file for file in files if "jupyter_jaxcb" in file.split(os.sep)
    ]
