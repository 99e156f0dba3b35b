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


def test_nothing_is_shown_when_no_callback_ran(kernel):
    assert kernel.run("jax.jit(lambda x: x + 1)(1.0)").traces == []
    assert kernel.run(SETUP).traces == []
    assert kernel.run("jax.make_jaxpr(double)(1.0); jax.eval_shape(double, 1.0);").traces == []


def test_trace_follows_the_output_of_the_cell(double):
    ran = double.run("print('first'); double(1.0)")
    assert ran.order == ["stream", "execute_result", "trace"]


def test_trace_follows_the_traceback(double):
    ran = double.run("jax.jit(double)(1.0); 1 / 0")
    assert ran.order == ["error", "trace"]
    assert [site["calls"] for site in ran.sites] == [1]


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


def test_elided_callback_is_named_with_reason_and_advice(double):
    ran = double.run(
        "@jax.jit\ndef f(x):\n    unused = double(x)\n    return double(x + 1)\nf(1.0)"
    )
    unused, used = ran.sites
    assert (unused["line"], unused["status"], unused["calls"]) == (3, "unused", 0)
    assert "nothing uses" in unused["reason"] and "io" in unused["advice"]
    assert (used["line"], used["status"], used["calls"]) == (4, "kept", 1)
    assert "unused" in ran.trace["text/plain"]


def test_lowering_without_compiling_reports_no_elision(double):
    code = "low = jax.jit(lambda x: (double(x), x)[1]).lower(1.0)"
    assert double.run(code).traces == []
    assert [site["status"] for site in double.run("low.compile();").sites] == ["unused"]


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


def test_call_site_in_another_cell_is_marked(double):
    double.run("f = jax.jit(lambda x: double(x))")
    assert double.run("f(1.0);").sites[0]["where"] == "line 1, another cell"
    both = [site["where"] for site in double.run("f(1.0); double(1.0);").sites]
    assert both == ["line 1", "line 1, another cell"]


def test_metadata_has_the_number_of_another_cell_also_without_ids_of_cells(double):
    """As in nbconvert, whose kernels get no ids."""
    double.run("f = jax.jit(lambda x: double(x))")
    number = double.run("'=' * 3").number - 1
    ((data, metadata),) = double.run("f(1.0); double(1.0);").traces
    ((measured,), (facts,)) = metadata.values(), [data[name] for name in metadata]
    named = [site.get("numbered", "") for site in measured["sites"]]
    assert sorted(named) == ["", f"[{number}] line 1"]
    assert "numbered" not in json.dumps(facts)


def test_trace_is_shown_once_when_cells_nest(double):
    ran = double.run("get_ipython().run_cell('double(1.0)'); double(2.0);")
    assert len(ran.traces) == 1
    assert sum(site["calls"] for site in ran.sites) == 2


def test_silent_execution_shows_nothing(double):
    assert double.run("double(1.0)", silent=True).traces == []
    assert [site["calls"] for site in double.run("double(1.0);").sites] == [1]


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


def test_record_keeps_the_recording_of_a_failing_cell(double):
    ran = double.run("%%jax_record r\ndouble(1.0)\n1 / 0")
    assert ran.error[0] == "ZeroDivisionError"
    assert "----> 3 1 / 0" in ran.error[2]
    assert double.run("len(r)").value == "1"


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


def test_recorded_cell_without_callbacks_suggests_the_option_jax(kernel):
    kernel.run("call = jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x))")
    ran = kernel.run("%%jax_record\nfloat(call(1.0))")
    assert ran.value == "1.0" and not ran.traces
    assert "%%jax_record --jax" in ran.text
    kernel.run("jax.clear_caches()")
    ran = kernel.run("%%jax_record --jax\nfloat(call(1.0))")
    assert [site["calls"] for site in ran.sites] == [1]
    assert ran.text == ""
