"""The host trace after a cell: a headline and a table, deterministic, shown once, shown last."""

import json
import re

import pytest

SETUP = """%%jax_callback pure --result x
def double(x):
    if np.any(x > 100):
        raise ValueError("no luck")
    return 2 * x"""


@pytest.fixture
def double(kernel):
    kernel.run(SETUP)
    return kernel


def test_error_of_a_host_function_is_shown_once_as_the_users_exception(double):
    for call in ("double(101.0)", "jax.jit(double)(101.0)", "f = jax.jit(double); f(1.); f(101.)"):
        ran = double.run(call)
        name, message, frames = ran.error
        assert (name, message) == ("ValueError", "no luck")
        assert '----> 4         raise ValueError("no luck")' in frames
        assert re.search(r"by the pure callback double, bound at cell In\[\d+\], line 1,", frames)
        assert "XlaRuntimeError" not in frames and "jupyter_jaxcb" not in frames
        assert ran.order.count("error") == 1
        assert ran.sites[0]["errors"] == ["ValueError: no luck"]


@pytest.mark.parametrize("shown", ["r", "r.recording"])
def test_a_cell_that_shows_the_recording_of_all_its_calls_has_one_host_trace(double, shown):
    block = "with jaxcb.record() as r:\n    y = double(1.0)"
    double.run("import jupyter_jaxcb as jaxcb")
    (site,) = double.run(f"{block}\n{shown}").sites
    assert site["calls"] == 1
    assert len(double.run(block).traces) == 1
    # The block has not all of it.
    assert len(double.run(f"{block}\ndouble(2.0)\n{shown}").traces) == 2
    assert (
        len(double.run(f"{block}\njax.jit(lambda x: (double(x), x)[1])(2.0)\n{shown}").traces) == 2
    )


def test_elided_callback_is_named_with_reason_and_advice(double):
    ran = double.run(
        "@jax.jit\ndef f(x):\n    unused = double(x)\n    return double(x + 1)\nf(1.0)"
    )
    unused, used = ran.sites
    assert (unused["line"], unused["status"], unused["calls"]) == (3, "unused", 0)
    assert "nothing uses" in unused["reason"] and "io" in unused["advice"]
    assert (used["line"], used["status"], used["calls"]) == (4, "kept", 1)
    assert "unused" in ran.trace["text/plain"]


def test_data_is_deterministic_and_times_are_metadata(double, unpacked):
    code = "jax.vmap(double)(jnp.arange(4.));"
    (first, metadata), (second, _) = (double.run(code).traces[0] for _ in range(2))
    assert first == second
    assert set(first) == {"text/plain", "text/html", *metadata}
    (measured,) = metadata.values()
    assert [element for _, _, element, *_ in unpacked(measured["calls"])] == [0, 1, 2, 3]
    text = json.dumps(first)
    for leak in ("In[", "ipykernel", "tmp", "_ns"):
        assert leak not in text


def test_calls_of_a_program_nobody_waits_for_are_shown_in_its_cell(double):
    double.run(
        "big = jnp.ones((400, 400))\n"
        "f = jax.jit(lambda x: double((x @ x @ x)[0, 0] / 1e6))\n"
        "g = jax.jit(lambda x: x @ x / 400)\n"
        "f(big);"
    )
    for _ in range(5):
        ran = double.run("y = f(g(g(g(big))))")
        assert [site["calls"] for site in ran.sites] == [1]


def test_error_of_a_program_nobody_waits_for_is_shown_in_its_cell(kernel):
    kernel.run("%%jax_callback io --result None\ndef log(x): raise ValueError('no luck')")
    kernel.run(
        "big = jnp.ones((700, 700))\n"
        "f = jax.jit(lambda x: log(x[0, 0]))\n"
        "g = jax.jit(lambda x: x @ x / 700)\n"
        "g(big).block_until_ready();"
    )
    for _ in range(3):
        ran = kernel.run("f(g(g(g(big)))); print('dispatched')")
        assert ran.error[:2] == ("ValueError", "no luck")
        assert ran.order[-2:] == ["error", "trace"]
        assert ran.order.count("error") == 1
    assert kernel.run("1 + 1").order == ["execute_result"]


def test_record_keeps_the_recording_under_its_name(double):
    ran = double.run("%%jax_record r\ndouble(1.0)\nfloat(double(2.0))")
    assert ran.value == "4.0"
    assert len(ran.traces) == 1
    assert double.run("len(r), type(r).__name__").value == "(2, 'Recording')"
    again = double.run("r")
    assert [site["calls"] for site in again.sites] == [1, 1]


def test_record_off_shows_nothing_until_auto(double):
    double.run("%jax_record off")
    assert double.run("double(1.0)").traces == []
    assert len(double.run("%%jax_record\ndouble(1.0)").traces) == 1
    assert double.run("double(1.0)").traces == []
    double.run("%jax_record auto")
    assert len(double.run("double(1.0)").traces) == 1


def test_callbacks_lists_every_callback_with_totals(double):
    double.run("%%jax_callback io --result None\ndef never(x): pass")
    for _ in range(2):
        double.run("[double(1.0), double(2.0)];")
    listed = double.run("%jax_callbacks").value
    rows = [line.split() for line in listed.splitlines()]
    assert rows[0][:3] == ["callback", "flavor", "where"]
    assert "not used yet" in next(line for line in listed.splitlines() if "never" in line)
    calls = [line for line in listed.splitlines() if line.startswith("double")]
    assert len(calls) == 1 and "4 calls" in calls[0]  # equal-looking sites are one row
