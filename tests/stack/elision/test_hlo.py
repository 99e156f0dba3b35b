"""Finding host calls in optimized programs, tested with small modules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize, to_html, to_text
from jupyter_jaxcb.stack.elision import _programs
from jupyter_jaxcb.stack.elision._made import host_calls
from tests.stack.elision._battery import Hosts

X = np.float32(1)
TARGET = "xla_ffi_python_cpu_callback"


def instruction(opcode, *called, target="", config="", op_name=""):
    """Write an instruction; the computations that it calls are named by their numbers."""
    key = {"conditional": "branch_computations", "reduce": "to_apply"}.get(opcode, "calls")
    names = [f"%c{number}" for number in called]
    text = f"  %{opcode}.1 = (f32[], f32[3]{{0}}) {opcode}(%x)"
    if opcode == "while":
        text += f", condition={names[1]}, body={names[0]}"
    elif names:
        text += f", {key}={{{', '.join(names)}}}" if len(names) > 1 else f", {key}={names[0]}"
    text += f', custom_call_target="{target}"' * bool(target)
    text += f', metadata={{op_type="x" op_name="{op_name}" stack_frame_id=7}}'
    return text + f", backend_config={config}" * bool(config)


def call(index, where="x", config="{{index = {} : ui64}}"):
    op_name = f"jit(f)/{where}/jaxcb_pure_callback"
    return instruction("custom-call", target=TARGET, config=config.format(index), op_name=op_name)


def loop(body, times=None, condition=99):
    config = f'{{"known_trip_count":{{"n":"{times}"}},"other":{{}}}}' if times else ""
    return instruction("while", body, condition, config=config)


def module(entry, **computations):
    """Write a module from lists of instructions; "c7" names computation number 7."""
    parts = ["HloModule jit_f"]
    for name, own in [*computations.items(), ("main", entry)]:
        begin = "ENTRY " * (name == "main") + f"%{name} (a.1: f32[]) -> f32[3] {{"
        parts += [begin, *own, "}", ""]
    return "\n".join(parts)


def gpu_call(index, suffix=""):
    target, config = f"xla_ffi_python_gpu_callback{suffix}", f"{{index = {index} : ui64}}"
    return instruction("custom-call", target=target, config=config, op_name="jit(f)/jaxcb_io_call")


def asynchronous(*again):
    parts = instruction("async-update", *again), instruction("async-done", *again)
    return [instruction("async-start", 3), *parts]


ONE = {"c1": [call(0)], "c2": []}
STARTED = {"c3": [gpu_call(0)]}
BUFFERS = [instruction("call", 3), instruction("call", 4)]


@pytest.mark.parametrize(
    ("entry", "computations", "calls"),
    [
        ([loop(2, 4, condition=1)], ONE, {0: [0]}),
        ([loop(1)], ONE, {0: [None]}),
        ([instruction("conditional", 1, 2)], ONE, {0: [None]}),
        ([instruction("reduce", 1)], ONE, {0: [None]}),
        ([instruction("call", 1), instruction("call", 1)], ONE, {0: [1, 1]}),
        ([instruction("call", 1), instruction("add", op_name="calls={%c1}")], ONE, {0: [1]}),
        (asynchronous(), STARTED, {0: [1]}),
        (asynchronous(3), STARTED, {0: [1]}),
        ([loop(1, 7, condition=2)], {**ONE, **STARTED, "c1": asynchronous(3)}, {0: [7]}),
        (
            [loop(1, 5, condition=2), gpu_call(2)],
            {
                "c1": BUFFERS,
                "c2": [],
                "c3": [gpu_call(0, "_cmd_buffer")],
                "c4": [gpu_call(1, "_cmd_buffer")],
            },
            {0: [5], 1: [5], 2: [1]},
        ),
    ],
    ids=[
        "the condition of a loop of known length is never evaluated",
        "a loop of unknown length",
        "a branch",
        "a reduction",
        "a computation that is called twice",
        "a computation that a name of the user mentions",
        "an asynchronous computation that its start names",
        "an asynchronous computation that each instruction names",
        "an asynchronous computation in a loop",
        "command buffers in a loop",
    ],
)
def test_each_host_call_has_the_calls_of_a_run_that_are_known(entry, computations, calls):
    found = host_calls(module(entry, **computations))
    assert {number: [one.calls for one in own] for number, own in found.items()} == calls


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "no entry computation"),
        (module([call(0, config="{{place = {} : ui64}}")]), "no index"),
        (module([], c1=[call(0)]), "no call path leads"),
        (module([instruction("while", 1, 2).replace("body=", "by=")], c1=[], c2=[]), "no body"),
    ],
)
def test_malformed_program_is_an_error(data, words):
    with pytest.raises(ValueError, match=words):
        host_calls(data)


# User-chosen names that look like something XLA writes.
NAMES = (
    "index = 1",
    "index = 0 : ui64}",
    'q"uo"te, backend_config={index = 0 : ui64}',
    "x\nENTRY %main.9 (a: f32[]) -> f32[] {\n  %w = f32[] while(%x), body=%region_0.2",
    'known_trip_count":{"n":"77"}}',
    "branch_computations={%region_0.1, %region_1.2}, to_apply=%region_0.1",
    'custom_call_target="xla_ffi_python_cpu_callback"',
    "é\u2028\x0b\\ /while/body/cond/debug_print",
    "_python_",
)
METADATA = {'body="x': '{"known_trip_count":{"n":"77"}}', "index": "{index = 2 : ui64}"}


@pytest.mark.parametrize("name", [*NAMES, METADATA], ids=str)
def test_user_chosen_names_are_never_mistaken_for_instructions(name):
    h = Hosts()
    source = """
def f(x):
    with set_xla_metadata(**name) if isinstance(name, dict) else jax.named_scope(name):
        x = a(x)
        x = jax.lax.fori_loop(0, 3, lambda i, x: b(x) + 1, x)
        return jax.lax.cond(x > 0, lambda x: c(x), lambda x: x, x)
"""
    space = {name: h.pure(name) for name in "abc"}
    space |= {"jax": jax, "name": name, "set_xla_metadata": set_xla_metadata}
    exec(compile(source, f"{name}.py", "exec"), space)
    f = space["f"]
    if name is not METADATA:
        f.__code__ = f.__code__.replace(co_name=name, co_qualname=name)
        f.__name__ = f.__qualname__ = name
    jitted = jax.jit(f)
    ahead = summarize(jaxcb.explain(jitted)(X))
    assert not h.calls
    with jaxcb.record() as r:
        jitted(X).block_until_ready()
    assert h.calls == {"a": 1, "b": 3, "c": 1}
    for rows in (ahead, summarize(r.recording)):
        expected = {row.site.function: row.expected for row in rows}
        assert expected == {"a": 1, "b": 3, "c": None}


def test_program_that_cannot_be_parsed_has_unknown_statuses_and_shows_the_rest(monkeypatch):
    def unreadable(module):
        raise ValueError("it is written in another tongue")

    monkeypatch.setattr(_programs, "host_calls", unreadable)

    @jax.jit
    def f(x):
        jaxcb.pure_callback(np.cos, x, x)  # unused, which needs no reading
        y = jaxcb.pure_callback(np.sin, x, x)
        z = jax.lax.cond(x > 5, lambda x: jaxcb.pure_callback(np.tan, x, x), lambda x: x, x)
        return y + z

    with jaxcb.record() as r:
        f(X).block_until_ready()
    unused, called, in_branch = summarize(r.recording)
    assert (unused.status, called.status, called.calls) == (Status.UNUSED, Status.KEPT, 1)
    assert (in_branch.status, in_branch.expected) == (Status.UNKNOWN, None)
    assert "ValueError: it is written in another tongue" in in_branch.reason
    assert "unknown" in to_text(r.recording)
    assert "unknown" in to_html(r.recording)


def test_verdict_that_cannot_be_had_does_not_stop_the_program(monkeypatch):
    def fail(evidence, program):
        raise IndexError("list index out of range")

    monkeypatch.setattr(_programs, "outcome", fail)
    with jaxcb.record() as r:
        y = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))(X)
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-6)
    (summary,) = summarize(r.recording)
    assert summary.calls == 1
    (outcome,) = r.recording.outcomes
    assert (outcome.status, outcome.detail) == (
        Status.UNKNOWN,
        "IndexError: list index out of range",
    )


def test_programs_without_callbacks_are_not_parsed(monkeypatch):
    monkeypatch.setattr(_programs, "host_calls", lambda module: pytest.fail("it was read"))
    with jaxcb.record() as r:
        jax.jit(jnp.sin)(X).block_until_ready()
        jax.jit(lambda x: (jaxcb.pure_callback(np.sin, x, x), x)[1])(X).block_until_ready()
    assert [outcome.status for outcome in r.recording.outcomes] == [Status.UNUSED]
