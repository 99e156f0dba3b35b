"""Finding host calls in optimized programs, tested with small modules."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize, to_html, to_text
from jupyter_jaxcb.stack.elision import _hlo, _protobuf
from jupyter_jaxcb.stack.elision._hlo import host_call_instructions

X = np.float32(1)
TARGET = "xla_ffi_python_cpu_callback"


def varint(number):
    low, more = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(more) if more else bytes([low])


def field(key, value):
    """Encode one field of a protocol buffer: a number, a message or text."""
    if isinstance(value, int):
        return varint(key << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(key << 3 | 2) + varint(len(data)) + data


def instruction(opcode, *called, target="", config="", op_name=""):
    fields = [field(2, opcode), field(7, field(2, op_name)), field(28, target)]
    return b"".join([*fields, field(38, b"".join(map(varint, called))), field(43, config)])


def call(index, where="x", config="{{index = {} : ui64}}"):
    op_name = f"jit(f)/{where}/jaxcb_pure_callback"
    return instruction("custom-call", target=TARGET, config=config.format(index), op_name=op_name)


def loop(body, times=None, condition=99):
    config = f'{{"known_trip_count":{{"n":"{times}"}},"other":{{}}}}' if times else ""
    return instruction("while", body, condition, config=config)


def module(entry, **computations):
    """Encode a module from lists of instructions; "c7" names computation number 7."""
    found = {0: entry} | {int(name[1:]): own for name, own in computations.items()}
    written = [field(5, n) + b"".join(field(2, i) for i in own) for n, own in found.items()]
    return b"".join(
        [field(1, "jit_f"), *(field(3, computation) for computation in written), field(6, 0)]
    )


def test_condition_of_a_loop_with_a_known_trip_count_is_never_evaluated():
    ((_, (found,)),) = host_call_instructions(
        module([loop(2, 4, condition=1)], c1=[call(0)], c2=[])
    ).items()
    assert found.calls == 0


@pytest.mark.parametrize(
    "caller",
    [loop(1), instruction("conditional", 1, 2), instruction("reduce", 1)],
    ids=["loop", "branches", "reduction"],
)
def test_calls_in_a_loop_of_unknown_length_or_a_branch_are_unknown(caller):
    ((_, (found,)),) = host_call_instructions(module([caller], c1=[call(0)], c2=[])).items()
    assert found.calls is None


def test_computation_that_is_called_twice_makes_its_calls_twice():
    callers = [instruction("call", 1), instruction("call", 1)]
    ((_, found),) = host_call_instructions(module(callers, c1=[call(0)])).items()
    assert [host_call.calls for host_call in found] == [1, 1]


def gpu_call(index, suffix=""):
    target = f"xla_ffi_python_gpu_callback{suffix}"
    op_name, config = "jit(f)/jaxcb_io_callback", f"{{index = {index} : ui64}}"
    return instruction("custom-call", target=target, config=config, op_name=op_name)


@pytest.mark.parametrize(
    "again", [(), (1,)], ids=["named-by-the-start", "named-by-each-instruction"]
)
def test_asynchronous_computation_makes_its_calls_once(again):
    entry = [
        instruction("async-start", 1),
        instruction("async-update", *again),
        instruction("async-done", *again),
    ]
    ((_, found),) = host_call_instructions(module(entry, c1=[gpu_call(0)])).items()
    assert [host_call.calls for host_call in found] == [1]


def test_asynchronous_computation_in_a_loop_makes_its_calls_in_each_step():
    body = [instruction("async-start", 3), instruction("async-done", 3)]
    data = module([loop(1, 7, condition=2)], c1=body, c2=[], c3=[gpu_call(0)])
    ((_, (found,)),) = host_call_instructions(data).items()
    assert found.calls == 7


def test_command_buffer_makes_the_calls_of_its_computation():
    buffers = [instruction("call", 3), instruction("call", 4)]
    data = module(
        [loop(1, 5, condition=2), gpu_call(2)],
        c1=buffers, c2=[], c3=[gpu_call(0, "_cmd_buffer")], c4=[gpu_call(1, "_cmd_buffer")],
    )  # fmt: skip
    found = host_call_instructions(data)
    assert {n: [one.calls for one in own] for n, own in found.items()} == {0: [5], 1: [5], 2: [1]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no entry computation"),
        (module([call(0, config="{{place = {} : ui64}}")]), "no index"),
        (module([], c1=[call(0)]), "no call path leads"),
        (b"HloModule jit_f", "wire type|longer"),
        (module([instruction("while", 1, 2, config="n=5")], c1=[call(0)], c2=[]), "Expecting"),
    ],
)
def test_malformed_program_is_an_error(data, words):
    with pytest.raises(ValueError, match=words):
        host_call_instructions(data)


def called(program, *args):
    """Return the calls of a run, those its recording expects, and those `explain` expects."""
    calls = collections.Counter()

    def host(name):
        def counted(x):
            calls[name] += 1
            return np.asarray(x)

        counted.__name__ = name
        return jaxcb.pure(counted, result="x")

    jitted = jax.jit(program({name: host(name) for name in "abc"}))
    ahead = {row.site.function: row.expected for row in summarize(jaxcb.explain(jitted)(*args))}
    assert not calls
    with jaxcb.record() as r:
        jax.block_until_ready(jitted(*args))
    expected = {row.site.function: row.expected for row in summarize(r.recording)}
    return dict(calls), expected, ahead


def test_named_scope_that_looks_like_an_index_does_not_mix_up_call_sites():
    def program(hosts):
        def f(x):
            with jax.named_scope("index = 1"):
                x = hosts["a"](x)
            x = jax.lax.fori_loop(0, 3, lambda i, x: hosts["b"](x) + 1, x)
            with jax.named_scope("index = 0 : ui64}"):
                return hosts["c"](x)

        return f

    assert called(program, X) == ({"a": 1, "b": 3, "c": 1},) * 3


# User-chosen names that look like something XLA writes.
NAMES = (
    'q"uo"te, backend_config={index = 0 : ui64}',
    "x\nENTRY %main.9 (a: f32[]) -> f32[] {\n  %w = f32[] while(%x), body=%region_0.2",
    'known_trip_count":{"n":"77"}}',
    "branch_computations={%region_0.1, %region_1.2}, to_apply=%region_0.1",
    'custom_call_target="xla_ffi_python_cpu_callback"',
    "é\u2028\x0b\\ /while/body/cond/debug_print",
    "_python_",
)


@pytest.mark.parametrize("name", NAMES)
def test_user_chosen_names_are_never_mistaken_for_instructions(name):
    source = """
def f(x):
    with jax.named_scope(name):
        x = hosts["a"](x)
        x = jax.lax.fori_loop(0, 3, lambda i, x: hosts["b"](x) + 1, x)
        return jax.lax.cond(x > 0, lambda x: hosts["c"](x), lambda x: x, x)
"""

    def program(hosts):
        space = {"jax": jax, "hosts": hosts, "name": name}
        exec(compile(source, f"{name}.py", "exec"), space)
        f = space["f"]
        f.__code__ = f.__code__.replace(co_name=name, co_qualname=name)
        f.__name__ = f.__qualname__ = name
        return f

    calls, expected, ahead = called(program, X)
    assert calls == {"a": 1, "b": 3, "c": 1}
    assert expected == ahead == {"a": 1, "b": 3, "c": None}


def test_user_chosen_metadata_is_never_mistaken_for_instructions():
    metadata = {'body="x': '{"known_trip_count":{"n":"77"}}', "index": "{index = 2 : ui64}"}

    def program(hosts):
        def f(x):
            with set_xla_metadata(**metadata):
                x = hosts["a"](x)
                return jax.lax.fori_loop(0, 3, lambda i, x: hosts["b"](x) + 1, x)

        return f

    assert called(program, X) == ({"a": 1, "b": 3},) * 3


def test_each_instruction_of_a_program_is_read_once(monkeypatch):
    """The time is linear in the program, however many computations and call sites it has."""
    spans = []
    read = _protobuf._fields

    def counted(data, span):
        spans.append(span)
        return read(data, span)

    monkeypatch.setattr(_protobuf, "_fields", counted)

    def reads(count):
        inner = {f"c{n}": [call(n)] for n in range(1, count + 1)}
        del spans[:]
        found = host_call_instructions(
            module([loop(n, 2, condition=0) for n in range(1, count + 1)], **inner)
        )
        assert [host_call.calls for (host_call,) in found.values()] == [2] * count
        assert len(set(spans)) == len(spans)
        return len(spans)

    assert reads(200) - reads(100) == reads(300) - reads(200)


def test_program_that_cannot_be_parsed_has_unknown_statuses_and_shows_the_rest(monkeypatch):
    def unreadable(module):
        raise ValueError("it is written in another tongue")

    monkeypatch.setattr(_hlo, "host_call_instructions", unreadable)

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


def test_programs_without_callbacks_are_not_parsed(monkeypatch):
    monkeypatch.setattr(_hlo, "host_call_instructions", lambda module: pytest.fail("it was read"))
    with jaxcb.record() as r:
        jax.jit(jnp.sin)(X).block_until_ready()
        jax.jit(lambda x: (jaxcb.pure_callback(np.sin, x, x), x)[1])(X).block_until_ready()
    assert [outcome.status for outcome in r.recording.outcomes] == [Status.UNUSED]
