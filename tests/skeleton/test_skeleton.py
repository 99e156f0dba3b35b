"""The walking skeleton: one host call through the forms of docs/architecture.md, "The contract"."""

import dataclasses
import json
import os
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb
from jupyter_jaxcb import skeleton

FLAVORS = {"pure": skeleton.pure, "io": skeleton.io}


def sine(x):
    return np.sin(x).astype(x.dtype)


def looped(f):
    return lambda x: jax.lax.fori_loop(0, 5, lambda i, y: f(y), x)


PROGRAMS = {  # of a callback; the calls that a program makes, and the same program in JAX
    "eager": (lambda f: f, 1),
    "jit": (jax.jit, 1),
    "vmap": (lambda f: jax.vmap(f), 6),
    "vmap of jit": (lambda f: jax.vmap(jax.jit(f)), 6),
    "nested vmap": (lambda f: jax.jit(jax.vmap(jax.vmap(f), in_axes=1, out_axes=1)), 6),
    "loop": (lambda f: jax.jit(looped(f)), 5),
    "vmap of a loop": (lambda f: jax.jit(jax.vmap(looped(f))), 30),
}


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_of_jax_and_each_call_is_one_row(flavor, program):
    transform, calls = PROGRAMS[program]
    x = jnp.linspace(-1, 1, 6).reshape((2, 3) if program == "nested vmap" else (6,))
    x = x if "vmap" in program else x[0]
    seen = []
    f = FLAVORS[flavor](lambda x: (seen.append(1), sine(x))[1], result="x")
    with skeleton.record() as r:
        found = transform(f)(x)
        jax.block_until_ready(found)
    np.testing.assert_allclose(found, transform(jnp.sin)(x), rtol=1e-6)
    assert len(seen) == len(r.recording.calls) == calls
    assert (r.recording.calls["end_ns"] >= r.recording.calls["start_ns"]).all()
    (record,) = r.recording.sites
    assert (record.site.file, record.site.flavor) == (__file__, flavor)
    assert [aval.shape for aval in (*record.operands, *record.results)] == [(), ()]


def test_a_derivative_rule_is_used_and_without_one_the_error_says_what_to_type():
    f = skeleton.pure(sine, result="x")
    with pytest.raises(ValueError, match=r"sine\.defjvp\(rule\)"):
        jax.grad(f)(1.0)
    f.defjvp(lambda p, t: (f(*p), jnp.cos(*p) * t[0]))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(jnp.ones(3)), np.cos(np.ones(3)))


f = skeleton.pure(sine, result="x")
look = skeleton.debug(lambda x: None)
step = skeleton.io(sine, result="x")
VERDICTS = {  # a program, and status, asked and made of its callback
    "a call": (lambda x: f(x), "kept", 1, 1),
    "a scan": (looped(f), "kept", 5, 5),
    "an unused result": (lambda x: (f(x), x)[1], "unused", 1, 0),
    "an unused io result": (lambda x: (step(x), x)[1], "kept", 1, 1),
    "a debug call": (lambda x: (look(x), x)[1], "kept", 1, 1),
    "a loop-invariant call": (
        lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y + f(x), x), "hoisted", 5, 1,
    ),
    "an unrolled loop": (
        lambda x: jax.lax.scan(lambda y, _: (f(y), None), x, None, 7, unroll=2)[0], "kept", 7, 7,
    ),
    "a traced function used twice": (
        lambda x: (lambda g: g(x) + g(x))(jax.jit(lambda y: f(y))), "deduplicated", 2, 1,
    ),
    "a branch that is taken": (
        lambda x: jax.lax.cond(x > 0, lambda y: f(y), lambda y: y, x), "kept", None, None,
    ),
    "a branch that is not taken": (
        lambda x: jax.lax.cond(x < 0, lambda y: f(y), lambda y: y, x), "not_reached", None, None,
    ),
    "a while loop": (
        lambda x: jax.lax.while_loop(lambda y: y > 1e-3, lambda y: f(y) / 2, x), "kept", None, None,
    ),
    "an empty batch": (
        lambda x: x + jax.vmap(f)(jnp.zeros(0)).sum(), "not_reached", 0, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_has_the_calls_that_were_asked_for_and_those_that_were_made(name):
    program, *expected = VERDICTS[name]
    with skeleton.record() as r:
        jax.block_until_ready(jax.jit(lambda x: program(x))(1.5))
    (record,) = r.recording.sites
    status, asked, made, _ = record.verdict
    assert [status, asked, made] == expected
    if made is not None:
        assert len(r.recording.calls) == made
    assert record.program.runs == 1


def failing(x):
    if x == 2:
        raise OverflowError("no <b>luck</b>")
    return x


def test_the_exception_of_a_host_function_comes_back_and_its_row_has_it():
    g = skeleton.io(failing, result="x")
    program = jax.jit(jax.vmap(g))
    with skeleton.record() as r, pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(program(jnp.arange(4.0)))
    error = skeleton.host_error(caught.value)
    assert repr(error) == "OverflowError('no <b>luck</b>')"
    assert error.__traceback__.tb_next.tb_frame.f_code.co_name == "failing"
    assert r.recording.calls["element"].tolist() == [0, 1, 2]
    assert r.recording.calls["error"].tolist() == [0, 0, 1]
    assert r.recording.errors == ("OverflowError: no <b>luck</b>",)
    np.testing.assert_array_equal(program(jnp.zeros(2)), np.zeros(2))


def test_a_result_that_does_not_fit_its_declaration_is_an_error_that_names_both():
    wide = skeleton.pure(lambda x: np.zeros(2), result="x")
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(wide)(1.0)
    assert re.search(
        r"returned float64\[2\], but declares float32\[\]", str(skeleton.host_error(caught.value))
    )


def test_an_error_that_quotes_another_one_is_found_itself():
    def inner(x):
        raise ValueError("inner")

    def outer(x):
        try:
            skeleton.pure(inner, result="x")(1.0)
        except jax.errors.JaxRuntimeError as error:
            raise KeyError(f"outer\0: {error}") from None

    for run in (lambda f: f, jax.jit):
        with pytest.raises(jax.errors.JaxRuntimeError) as caught:
            run(skeleton.pure(outer, result="x"))(1.0)
        assert type(skeleton.host_error(caught.value)) is KeyError


def test_an_integer_that_does_not_fit_is_an_error():
    byte = jax.ShapeDtypeStruct((), jnp.int8)
    assert skeleton.pure(lambda: 100, result=byte)() == 100
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"int8\[\]"):
        skeleton.pure(lambda: 300, result=byte)()


@pytest.mark.parametrize("result", [None, "y", 5, jnp.float32, ("x", "x")], ids=str)
def test_a_result_that_says_no_shape_is_refused_at_once(result):
    with pytest.raises(ValueError, match=r"sine is neither the name of a parameter \('x'\) nor"):
        skeleton.pure(sine, result=result)


def test_calls_beyond_the_capacity_are_counted():
    with skeleton.record(capacity=2) as r:
        jax.block_until_ready(jax.jit(looped(f))(1.0))
        jax.block_until_ready(jax.jit(lambda x: step(x))(1.0))
    assert (len(r.recording.calls), r.recording.not_kept) == (2, (3, 1))
    facts = skeleton.view(r.recording)["facts"]
    assert facts["headline"] == "6 host calls, of which 2 are in the log"
    assert [site["status"] for site in facts["sites"]] == ["● 5 calls", "● 1 call"]


def test_blocks_do_not_nest():
    with skeleton.record() as outer, pytest.raises(RuntimeError, match="End it first"):
        with skeleton.record():
            pass
    assert len(outer.recording.calls) == 0


def some_recording():
    with skeleton.record() as r:
        jax.block_until_ready(jax.jit(jax.vmap(f))(jnp.arange(3.0)))
        jax.block_until_ready(jax.jit(lambda x: (f(x), x)[1])(1.0))
    return r.recording


def test_a_file_holds_the_recording_and_a_damaged_one_is_named(tmp_path):
    recording, path = some_recording(), tmp_path / "calls.jaxcb"
    recording.save(path)
    assert skeleton.view(skeleton.load(path)) == skeleton.view(recording)
    whole = path.read_bytes()
    for damage in range(0, len(whole), 7):
        path.write_bytes(whole[:damage] + bytes([whole[damage] ^ 255]) + whole[damage + 1 :])
        try:
            skeleton.view(skeleton.load(path))
        except ValueError as error:
            assert f"cannot read the recording '{path}'" in str(error)
    for field in ("site", "thread", "error"):
        calls = recording.calls.copy()
        calls[field][-1] = 2
        dataclasses.replace(recording, calls=calls).save(path)
        with pytest.raises(ValueError, match=f"has a number of a {field} that does not exist"):
            skeleton.load(path)
    path.write_bytes(whole[:-40])
    with pytest.raises(ValueError, match=r"calls\.jaxcb.*recording\.save"):
        skeleton.load(path)


def test_text_html_and_saved_output_print_the_same_sentences():
    first, second = (skeleton.view(some_recording()) for _ in range(2))
    assert first["facts"] == second["facts"]  # in every run
    assert first["measured"]["site"] == [0, 0, 0] and not first["measured"]["times"][1]
    line = some_recording.__code__.co_firstlineno + 2
    assert skeleton.text(first).replace(first["measured"]["times"][0], "TIME").splitlines() == [
        "3 host calls · 1 line to look at",
        f"sine · pure · test_skeleton.py:{line} · ● 3 calls · () → () · vmap 3, sequential · TIME",
        f"sine · pure · test_skeleton.py:{line + 1} · ⚠ unused · () → ()",
        "    0 calls instead of 1: nothing uses its result",
        "    use the result, or register it with @io",
    ]
    data, metadata = some_recording()._repr_mimebundle_()
    (kind,) = metadata
    assert data[kind] == first["facts"]
    for site in first["facts"]["sites"]:
        for sentence in (site["status"], site["where"], site["reason"], site["advice"]):
            assert sentence in data["text/html"] and sentence in data["text/plain"]
    json.dumps([data, metadata])


def test_names_are_text_in_html():
    def host(x):
        return x

    host.__name__ = "<script>\x1b[2J"
    with skeleton.record() as r:
        skeleton.pure(host, result="x")(1.0)
    (data, _) = r.recording._repr_mimebundle_()
    assert "<script" not in data["text/html"]
    (facts, *texts) = data.values()
    for text in (*texts, facts["sites"][0]["function"], facts["headline"]):
        assert text.replace("\n", "").isprintable()


def test_the_first_recorded_call_passes_few_functions():
    passed = []
    folder = os.path.join(os.path.dirname(jupyter_jaxcb.__file__), "")
    vmapped = jax.vmap(f)

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            passed.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    with skeleton.record():
        program = jax.jit(lambda x: vmapped(x))
        sys.setprofile(profile)
        try:
            program(jnp.arange(4.0)).block_until_ready()
        finally:
            sys.setprofile(None)
    assert ("cross", "made") == tuple(
        name for name in ("cross", "made") if any(name in qualname for _, qualname in passed)
    )
    assert len(passed) < 250


def test_types_of_the_front_end_are_those_of_the_view():
    types = Path(__file__).parents[2] / "labextension/src/skeleton/types.ts"
    assert types.read_text() == skeleton.typescript()
