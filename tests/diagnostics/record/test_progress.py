"""How many host calls are to be expected is reported while they are made."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import running_calls
from jupyter_jaxcb.recording import active
from jupyter_jaxcb.report import Progress

SCALAR = jax.ShapeDtypeStruct((), np.float32)


class Looks:
    """A host function that looks at the progress while it runs."""

    def __init__(self):
        self.seen = []
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        self.seen.append(progress(self.mark))
        return x


def progress(mark):
    own = Progress(0)
    recorded = active().snapshot(mark, own.seen)
    own.add(recorded)
    return own.to_message(recorded, 1, [])


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
def test_expected_calls_are_those_that_come(name, runs):
    host = Looks()
    program = jax.jit(lambda x: PROGRAMS[name](lambda y: call(host, y), x))
    with jaxcb.record() as r:
        host.mark = active().mark()
        for _ in range(runs):
            program(1.0).block_until_ready()
        end = progress(host.mark)
    assert end["expected"] == end["calls"] == host.calls == len(r.recording)
    # While it runs no call is recorded of that is not expected, and the last run is.
    assert all(s["expected"] is None or s["calls"] <= s["expected"] for s in host.seen)
    if name == "a loop":
        assert {s["expected"] for s in host.seen[2:20]} == {20}


def test_branch_that_depends_on_data_is_not_guessed():
    host = Looks()
    program = jax.jit(lambda x: jax.lax.while_loop(lambda y: y < 5, lambda y: call(host, y) + 1, x))
    with jaxcb.record():
        host.mark = active().mark()
        program(1.0).block_until_ready()
        assert progress(host.mark)["expected"] is None


def test_eager_calls_are_expected_as_they_come():
    host = Looks()
    with jaxcb.record():
        host.mark = active().mark()
        for _ in range(5):
            call(host, 1.0)
        assert progress(host.mark)["expected"] == 5


def test_eager_call_is_expected_before_it_comes_back():
    reported = []

    def host(x):
        own = Progress(0)
        recorded = active().snapshot(mark, own.seen)
        own.add(recorded)
        reported.append(own.to_message(recorded, 1, running_calls(active())))
        return x

    with jaxcb.record():
        mark = active().mark()
        for _ in range(2):
            call(host, 1.0)
    assert [(one["calls"], one["expected"]) for one in reported] == [(0, 1), (1, 2)]
    assert [[run["function"] for run in one["running"]] for one in reported] == [["host"], ["host"]]
    assert reported[0]["running"][0]["where"] == reported[1]["sites"][0]["where"]


def test_sites_add_up_their_calls_time_and_failures():
    def fails(x):
        raise ValueError("no luck")

    with jaxcb.record():
        mark = active().mark()
        for function in (fails, np.sin, np.sin):
            with contextlib.suppress(jax.errors.JaxRuntimeError):
                jaxcb.pure_callback(function, SCALAR, np.float32(1))
        own = Progress(0)
        recorded = active().snapshot(mark, own.seen)
        own.add(recorded)
        sites = {one.site.function: one for one in own.sites(recorded.lowered)}
    assert (sites["fails"].calls, sites["fails"].errors) == (1, 1)
    assert (sites["sin"].calls, sites["sin"].errors) == (2, 0)
    assert sites["sin"].host_ns == sum(
        int(row["end_ns"] - row["start_ns"])
        for row in recorded.calls
        if recorded.lowered[row["lowered"]].site.function == "sin"
    )


def test_looks_add_up_whatever_they_see_at_once():
    """One look at everything, and one after each call, come to the same."""
    host = Looks()
    with jaxcb.record():
        host.mark = active().mark()
        step, whole = Progress(0), Progress(0)
        for n in range(7):
            jaxcb.pure_callback(np.sin if n % 2 else np.cos, SCALAR, np.float32(n))
            recorded = active().snapshot(host.mark, step.seen)
            step.add(recorded)
        everything = active().snapshot(host.mark, 0)
        whole.add(everything)
        assert step.sites(everything.lowered) == whole.sites(everything.lowered)
        assert step.seen == whole.seen == 7


def test_rate_is_that_of_the_last_second():
    own = Progress(0)
    with jaxcb.record():
        mark = active().mark()
        recorded = active().snapshot(mark, 0)
    rates = []
    for second in range(1, 5):
        own.seen += 100 * second
        rates.append(own.to_message(recorded, second * 1_000_000_000, [])["rate"])
    assert rates == [100, 200, 300, 400]
