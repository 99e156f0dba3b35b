"""``%%jax_profile``: the host trace of a cell with its profile."""

import re

import pytest

PROFILE = re.compile(r'<section class="jaxcb-profile">.*?</section>')
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"
DEFINE = """
import time, threading
@jaxcb.pure(result=lambda x: x)
def simulate(x):
    time.sleep(0.02)
    return x

step = jax.jit(lambda x: simulate(x) + 1)
step(1.0);
"""
USE = "for n in range(5): step(float(n)).block_until_ready()"


@pytest.fixture
def kernel(kernel):
    kernel.run(f"import jupyter_jaxcb as jaxcb\n{DEFINE}")
    return kernel


def profile_of(ran):
    ((_, metadata),) = ran.traces
    return metadata[MIME]["profile"]


def test_cell_shows_one_host_trace_with_a_profile(kernel):
    ran = kernel.run(f"%%jax_profile run\n{USE}")
    assert ran.error is None
    profile = profile_of(ran)
    assert sum(part["wall_ns"] for part in profile["parts"]) == profile["wall_ns"]
    (host,) = (part for part in profile["parts"] if part["name"] == "simulate" and not part["kind"])
    assert re.fullmatch(r"\[\d+\] line 9", host["where"])  # in another cell
    assert host["wall_ns"] > 10**8
    assert "% " in profile["headline"]
    assert [(s["function"], s["calls"]) for s in ran.sites] == [("simulate", 5)]
    assert kernel.run("len(run), run.profile.of_kind('host') > 10**8").value == "(5, True)"


def test_only_the_html_of_the_display_has_times(kernel):
    """nbconvert and code hosts show nothing else; the regular expression is in the guide."""
    first, second = (kernel.run(f"%%jax_profile\n{USE}").trace for _ in range(2))
    assert {name for name in first if first[name] != second[name]} == {"text/html"}
    assert "% host functions" in first["text/html"] and "<li>" in first["text/html"]
    parts = [PROFILE.split(one["text/html"]) for one in (first, second)]
    assert parts[0] == parts[1] and len(parts[0]) == 2
    trace = kernel.run("%%jax_profile\nx = 1").trace
    assert trace["text/plain"] == "no host calls"


def test_named_profile_is_printed_with_times_and_lines(kernel):
    ran = kernel.run(f"%%jax_profile run\n{USE}\ntime.sleep(0.2)")
    assert ran.error is None
    text = kernel.run("print(run)").text
    idle = text.partition("· idle")[2].splitlines()
    assert any(line.split()[:2] == ["line", "3"] for line in idle)
    (row,) = (
        line for line in text.splitlines() if line.startswith("      simulate") and "calls" in line
    )
    assert re.search(r"\[\d+\] line 9 ", row)
    assert row.endswith("5 calls")


def test_a_failed_cell_shows_its_profile_and_its_error(kernel):
    ran = kernel.run(f"%%jax_profile run\n{USE}\n1 / 0")
    assert ran.error[0] == "ZeroDivisionError"
    assert profile_of(ran)["wall_ns"] > 10**8
    assert kernel.run("len(run)").value == "5"


@pytest.mark.long
def test_running_profiler_is_an_error_that_says_what_to_do(kernel, tmp_path):
    kernel.run(f"jax.profiler.start_trace({str(tmp_path)!r})")
    ran = kernel.run(f"%%jax_profile\n{USE}")
    kernel.run("jax.profiler.stop_trace()")
    assert ran.error[0] == "RuntimeError"
    assert ran.error[1].startswith("cannot profile: JAX's profiler is running already.")
    assert profile_of(kernel.run(f"%%jax_profile\n{USE}"))["wall_ns"] > 10**8


def test_profile_is_saved_with_the_recording(kernel, tmp_path):
    path = tmp_path / "run.jaxcb"
    assert kernel.run(f"%%jax_profile run --save {path}\n{USE}").error is None
    assert kernel.run(f"jaxcb.load({str(path)!r}).profile == run.profile").value == "True"


def test_profile_shows_values_on_request(kernel):
    ran = kernel.run("%%jax_profile run --values\nstep(41.25);")
    assert ran.error is None and "41.25" in str(ran.traces)
    assert "41.25" not in str(kernel.run("%%jax_profile run\nstep(41.25);").traces)
