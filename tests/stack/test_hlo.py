"""Where the host calls of an optimised program are, read from small modules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Fate
from jupyter_jaxcb.report import summarize, to_html, to_text
from jupyter_jaxcb.stack import _hlo
from jupyter_jaxcb.stack._hlo import Around, host_calls

CALL = (
    '  %call.{0} = f32[] custom-call(%x), custom_call_target="xla_ffi_python_cpu_callback", '
    'metadata={{op_name="jit(f)/{1}/jaxcb_pure_callback"}}, backend_config={{index = {0} : ui64}}'
)
X = np.float32(1)


def module(*computations):
    return "HloModule jit_f\n\n" + "\n\n".join(computations) + "\n"


def computation(header, *lines):
    return "\n".join((f"{header} (x: f32[]) -> f32[] {{", *lines, "}"))


def loop(body, times=None):
    known = f', backend_config={{"known_trip_count":{{"n":"{times}"}}}}' if times else ""
    return f"  %w = f32[] while(%x), condition=%c, body=%{body}{known}"


def test_call_of_the_entry_is_made_once():
    text = module(computation("ENTRY %main", CALL.format(3, "vmap()")))
    ((index, (call,)),) = host_calls(text).items()
    assert (index, call.op_name, call.around, call.calls) == (
        3, "jit(f)/vmap()/jaxcb_pure_callback", (), 1,
    )  # fmt: skip


def test_call_in_nested_loops_is_made_as_often_as_both_turn():
    text = module(
        computation("%inner", CALL.format(0, "while/body")),
        computation("%outer", loop("inner", 3)),
        computation("ENTRY %main", loop("outer", 4)),
    )
    ((_, (call,)),) = host_calls(text).items()
    assert call.around == (Around("loop", 4), Around("loop", 3))
    assert call.calls == 12


@pytest.mark.parametrize(
    "caller",
    [
        loop("inside"),
        "  %c = f32[] conditional(%p, %x, %x), branch_computations={%inside, %other}",
        "  %c = f32[] conditional(%p, %x, %x), true_computation=%inside, false_computation=%other",
    ],
    ids=["loop", "branches", "true or false"],
)
def test_call_in_a_loop_of_unknown_length_or_a_branch_depends_on_data(caller):
    text = module(
        computation("%inside", CALL.format(0, "x")),
        computation("%other"),
        computation("ENTRY %main", caller),
    )
    ((_, (call,)),) = host_calls(text).items()
    assert call.calls is None


def test_computation_that_is_called_twice_makes_its_calls_twice():
    text = module(
        computation("%shared", CALL.format(0, "x")),
        computation("ENTRY %main", "  %a = f32[] call(%x), to_apply=%shared",
                    "  %b = f32[] call(%a), to_apply=%shared"),
    )  # fmt: skip
    ((_, calls),) = host_calls(text).items()
    assert [call.calls for call in calls] == [1, 1]


def test_computation_whose_name_begins_like_another_is_another():
    text = module(
        computation("%region_1", CALL.format(0, "x")),
        computation("%region_10", CALL.format(1, "x")),
        computation("ENTRY %main", loop("region_10", 5), "  %a = call(%x), to_apply=%region_1"),
    )
    found = host_calls(text)
    assert (found[0][0].calls, found[1][0].calls) == (1, 5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no ENTRY computation"),
        (
            module(computation("ENTRY %main", CALL.format(0, "x").replace("index", "place"))),
            "index",
        ),
    ],
)
def test_text_that_is_not_understood_is_an_error(text, words):
    with pytest.raises(ValueError, match=words):
        host_calls(text)


def test_program_that_cannot_be_read_has_fates_that_are_unknown_and_shows_all_else(monkeypatch):
    def unreadable(text):
        raise ValueError("it is written in another tongue")

    monkeypatch.setattr(_hlo, "host_calls", unreadable)

    @jax.jit
    def f(x):
        jaxcb.pure_callback(np.cos, x, x)  # unused, which needs no reading
        y = jaxcb.pure_callback(np.sin, x, x)
        z = jax.lax.cond(x > 5, lambda x: jaxcb.pure_callback(np.tan, x, x), lambda x: x, x)
        return y + z

    with jaxcb.record() as r:
        f(X).block_until_ready()
    unused, called, in_branch = summarize(r.recording)
    assert (unused.fate, called.fate, called.calls) == (Fate.UNUSED, Fate.LIVE, 1)
    assert (in_branch.fate, in_branch.expected) == (Fate.UNKNOWN, None)
    assert "ValueError: it is written in another tongue" in in_branch.reason
    assert "unknown" in to_text(r.recording)
    assert "unknown" in to_html(r.recording)


def test_programs_without_callbacks_are_not_read(monkeypatch):
    monkeypatch.setattr(_hlo, "host_calls", lambda text: pytest.fail("it was read"))
    with jaxcb.record() as r:
        jax.jit(jnp.sin)(X).block_until_ready()
        jax.jit(lambda x: (jaxcb.pure_callback(np.sin, x, x), x)[1])(X).block_until_ready()
    assert [outcome.fate for outcome in r.recording.outcomes] == [Fate.UNUSED]
