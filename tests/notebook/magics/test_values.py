"""Sample values are shown, and saved with a notebook, only with the option --values."""

import dataclasses
import json

import pytest

# Numbers that occur in no line of code, in no shape and in no time.
GIVEN, RESULT = "1234.5", "2469"
LINE = f"{GIVEN} → {RESULT}"
CALL = "double(np.float32(2469 / 2));"


@pytest.fixture
def double(kernel):
    kernel.run("%%jax_callback pure --result x\ndef double(x):\n    return 2 * x")
    yield kernel
    kernel.run("%jax_record auto")


def saved(ran):
    """Return all that the notebook would save of a cell, except its source."""
    return json.dumps([ran.text, ran.value, ran.traces, ran.shown, ran.error], ensure_ascii=False)


def with_values(ran):
    """Return whether the trace has the values, which must be everywhere in its data or nowhere."""
    ((data, metadata),) = ran.traces
    found = {
        LINE in data["text/plain"],
        LINE in data["text/html"],
        ["1234.5 → 2469", False] in ran.sites[0]["sample_values"],
    }
    assert len(found) == 1
    assert GIVEN not in str(metadata)
    assert found.pop() == (GIVEN in saved(ran))
    return GIVEN in saved(ran)


@pytest.mark.parametrize(
    "code",
    [
        CALL,
        f"jax.jit(double)(np.float32({GIVEN[:4]} + .5));",
        "jax.vmap(double)(np.float32([2469 / 2, 3, 4]));",
        f"%%jax_record\n{CALL}",
        f"%%jax_record kept\n{CALL}",
        "r = None\nimport jupyter_jaxcb as jaxcb\nwith jaxcb.record() as r:\n    " + CALL,
    ],
    ids=["eager", "jit", "elements", "record", "record by name", "record()"],
)
def test_no_value_is_saved_without_the_option(double, code):
    ran = double.run(code)
    assert len(ran.traces) == 1
    assert not with_values(ran)
    assert ran.sites[0]["sample_values"] == []


def test_record_with_values_shows_them_for_one_cell(double):
    assert with_values(double.run(f"%%jax_record --values\n{CALL}"))
    assert not with_values(double.run(CALL))


def test_auto_with_values_shows_them_in_every_cell_until_auto(double):
    double.run("%jax_record auto --values")
    for _ in range(2):
        assert with_values(double.run(CALL))
    assert with_values(double.run(f"%%jax_record\n{CALL}"))
    double.run("%jax_record auto")
    assert not with_values(double.run(CALL))


def test_failing_call_shows_its_arguments(kernel):
    kernel.run("%%jax_callback pure --result x\ndef fails(x):\n    raise ValueError('no luck')")
    code = "fails(np.float32(2469 / 2))"
    plain, detailed = (kernel.run(f"%%jax_record{option}\n{code}") for option in ("", " --values"))
    assert f"called with float32[] = {GIVEN}" in plain.error[2], "the traceback has them anyway"
    assert GIVEN not in saved(dataclasses.replace(plain, error=None))
    assert f"{GIVEN} → ✕ raised" in detailed.trace["text/plain"]


def test_displayed_recording_has_values_only_with_auto_values(double):
    double.run(f"%%jax_record kept\n{CALL}")
    assert GIVEN not in saved(double.run("kept"))
    double.run("%jax_record auto --values")
    shown = double.run("kept")
    assert LINE in shown.traces[0][0]["text/plain"]


def test_widget_shows_values_on_request(kernel):
    kernel.run(
        "import jupyter_jaxcb as jaxcb\n@jaxcb.pure(result='x')\ndef double(x): return 2 * x"
    )
    kernel.run("with jaxcb.record() as r: double(20.625)")
    state = "str(jaxcb.view(r.recording{}).get_state())"
    assert kernel.run(f"'41.25' in {state.format(', values=True')}").value == "True"
    assert kernel.run(f"'41.25' in {state.format('')}").value == "False"
