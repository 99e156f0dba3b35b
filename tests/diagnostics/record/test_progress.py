"""A progress display knows the expected number of host calls while the program runs."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import LONG_NS
from tests.interface import Progress, active, running_calls

SCALAR = jax.ShapeDtypeStruct((), np.float32)


class ReadsProgress:
    """A host function that reads the progress while it runs."""

    def __init__(self):
        self.messages = []
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        self.messages.append(progress_since(self.mark))
        return x


def progress_since(mark):
    """Return the progress message for everything recorded since `mark`."""
    progress = Progress(0)
    recorded = active().snapshot(mark, progress.seen)
    progress.add(recorded)
    return progress.to_message(recorded, 1, [])


def call(host, x):
    return jaxcb.pure_callback(host, SCALAR, x, vmap_method="sequential")


PROGRAMS = {
    "one call": lambda f, x: f(x),
    "a loop": lambda f, x: jax.lax.fori_loop(0, 20, lambda i, y: f(y), x),
    "loops in a loop": lambda f, x: jax.lax.fori_loop(
        0, 3, lambda i, y: f(jax.lax.fori_loop(0, 4, lambda j, z: f(z), y)), x
    ),
    "elements": lambda f, x: jax.vmap(f)(x + jnp.arange(6.0)).sum(),
    "two sites": lambda f, x: f(x) + f(x + 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("runs", [1, 3])
def test_expected_calls_equal_the_calls_made(name, runs):
    host = ReadsProgress()
    program = jax.jit(lambda x: PROGRAMS[name](lambda y: call(host, y), x))
    with jaxcb.record() as r:
        host.mark = active().mark()
        for _ in range(runs):
            program(1.0).block_until_ready()
        end = progress_since(host.mark)
    assert end["calls"] == host.calls == len(r.recording)
    if runs == 1:
        assert (end["expected"], end["run"]) == (host.calls, 0)
    # During the run there are never more calls than expected.
    known = [m for m in host.messages if m["expected"] is not None]
    earlier = [max(m["run"] - 1, 0) * m["expected"] for m in known]
    assert all(
        0 <= m["calls"] - before <= m["expected"] for m, before in zip(known, earlier, strict=True)
    )
    if name == "a loop":
        assert {m["expected"] for m in host.messages[2:20]} == {20}


@pytest.mark.kept
@pytest.mark.parametrize("batched", [False, True], ids=["compiled", "eager, batched"])
def test_in_a_python_loop_the_run_under_way_counts_after_two(batched):
    """Of a loop whose end nobody knows, a total would always be almost reached."""
    host = ReadsProgress()
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda i, y: call(host, y), x))
    program = (lambda x: jax.vmap(lambda y: call(host, y))(jnp.full(10, x))) if batched else loop
    ends = []
    with jaxcb.record():
        host.mark = active().mark()
        for _ in range(5):
            program(1.0).block_until_ready()
            ends.append(progress_since(host.mark))
    found = [(m["calls"], m["expected"], m["run"]) for m in ends]
    assert found == [(10, 10, 0), (20, 20, 0), (30, 10, 3), (40, 10, 4), (50, 10, 5)]


@pytest.mark.kept
def test_in_a_python_loop_no_total_is_said_of_several_programs_or_of_runs_of_one_call():
    host = ReadsProgress()
    one, two = (jax.jit(lambda x, n=n: call(host, x) + n) for n in range(2))
    ends = []
    with jaxcb.record():
        for step in (
            lambda: one(1.0).block_until_ready(),
            lambda: (one(1.0), jax.block_until_ready(two(1.0))),
            lambda: call(host, 1.0).block_until_ready(),
        ):
            host.mark = active().mark()
            for _ in range(4):
                step()
            ends.append(progress_since(host.mark))
    assert [(m["calls"], m["expected"], m["run"]) for m in ends] == [
        (4, None, 0), (8, None, 0), (4, None, 0),
    ]  # fmt: skip


@pytest.mark.kept
def test_no_total_is_said_after_a_run_that_failed():
    """It has not made all of its calls."""

    def fails_at_the_second(x):
        calls.append(x)
        if len(calls) == 2:
            raise ValueError("no luck")
        return x

    calls = []
    program = jax.jit(
        lambda x: jax.lax.fori_loop(0, 10, lambda i, y: call(fails_at_the_second, y), x)
    )
    with jaxcb.record():
        mark = active().mark()
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            program(1.0).block_until_ready()
        program(1.0).block_until_ready()
        end = progress_since(mark)
    assert (end["calls"], end["expected"], end["run"]) == (12, None, 0)


def test_eager_call_is_expected_before_it_returns():
    messages = []

    def host(x):
        progress = Progress(0)
        recorded = active().snapshot(mark, progress.seen)
        progress.add(recorded)
        later = active().clock() + 2 * LONG_NS
        messages.append(progress.to_message(recorded, later, running_calls(active())))
        return x

    with jaxcb.record():
        mark = active().mark()
        for _ in range(2):
            call(host, 1.0)
    assert [(m["calls"], m["expected"]) for m in messages] == [(0, 1), (1, 2)]
    assert [[run["function"] for run in m["running"]] for m in messages] == [["host"], ["host"]]
    assert messages[0]["running"][0]["where"] == messages[1]["sites"][0]["where"]


@pytest.mark.kept
def test_site_says_for_how_long_the_first_of_its_unfinished_calls_has_been_running():
    seen = []

    def host(x):
        progress, recorder = Progress(0), active()
        running = running_calls(recorder)
        recorded = recorder.snapshot(mark, 0, [call.lowered for call in running])
        progress.add(recorded, running)
        now = min(call.start_ns for call in running) + 14_200_000_000
        message = progress.to_message(recorded, now, running)
        seen.append((progress.sites(recorded.lowered), message["sites"]))
        return x

    with jaxcb.record():
        mark = active().mark()
        call(host, 1.0)
    ((progress, sites),) = seen
    assert [(one.calls, one.running_ns) for one in progress] == [(0, 14_200_000_000)]
    assert [(one["consequence"], one["figures"]) for one in sites] == [
        ("running", [["running 14 s", True]])
    ]


def test_progress_sums_calls_time_and_errors_by_site():
    def fails(x):
        raise ValueError("no luck")

    with jaxcb.record():
        mark = active().mark()
        for function in (fails, np.sin, np.sin):
            with contextlib.suppress(jax.errors.JaxRuntimeError):
                jaxcb.pure_callback(function, SCALAR, np.float32(1))
        progress = Progress(0)
        recorded = active().snapshot(mark, progress.seen)
        progress.add(recorded)
        sites = {row.site.function: row for row in progress.sites(recorded.lowered)}
    assert (sites["fails"].calls, sites["fails"].errors) == (1, 1)
    assert (sites["sin"].calls, sites["sin"].errors) == (2, 0)
    assert sites["sin"].host_ns == sum(
        int(row["end_ns"] - row["start_ns"])
        for row in recorded.calls
        if recorded.lowered[row["lowered"]].site.function == "sin"
    )


def test_progress_says_how_many_callbacks_of_jax_the_running_program_has_beside_ours():
    host = ReadsProgress()

    @jax.jit
    def program(x):
        jax.debug.print("x {}", x)
        return jax.pure_callback(np.sin, SCALAR, call(host, x))

    with jaxcb.record() as r:
        host.mark = active().mark()
        jax.block_until_ready(program(1.0))
    (message,) = host.messages
    assert message["not_observed"] == "2 callbacks of JAX not recorded"
    assert r.recording.not_observed == 2
