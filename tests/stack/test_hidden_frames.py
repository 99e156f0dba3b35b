"""A wrong registration is shown at the line that registers: no frame of ours."""

import traceback

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
def test_a_wrong_registration_shows_no_frame_of_ours(register):
    with pytest.raises((TypeError, ValueError)) as caught:
        register()
    shown = [
        frame.f_code.co_qualname
        for frame, _ in traceback.walk_tb(caught.tb)
        if "jupyter_jaxcb" in frame.f_globals["__name__"].split(".")[:1]
        and "__tracebackhide__" not in frame.f_locals
    ]
    assert shown == []
