"""If a program compiled in an earlier block runs again, its elided calls are reported again."""

import concurrent.futures
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import Hosts, compare

X = np.arange(1, 4, dtype=np.float32)


def deduplicated(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) - 2 * g(x)


def hoisted(h):
    a = h.pure("a")
    return lambda x: lax.fori_loop(0, 4, lambda i, c: c + a(x), x)


def unused(h):
    a = h.pure("a")
    return lambda x: (a(x), x)[1]


def optimized_away(h):
    a = h.pure("a")
    return lambda x: jnp.where(False, a(x), x)


def unused_beside_kept(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: (a(x), b(x))[1]


def not_reached(h):
    a, b = h.pure("a"), h.io("b")
    return lambda x: lax.cond(x[0] > 9, a, b, x)


def length_0(h):
    a = h.io("a")
    return lambda x: lax.scan(lambda c, _: (a(c), None), x, length=0)[0]


PROGRAMS = [
    ("an unused call", unused, {"a": "unused 0"}),
    ("a call that is optimized away", optimized_away, {"a": "optimized away 0"}),
    ("a deduplicated call", deduplicated, {"a": "deduplicated 1"}),
    ("a hoisted call", hoisted, {"a": "hoisted 1"}),
    ("an unused call beside a kept one", unused_beside_kept, {"a": "unused 0", "b": "kept 1"}),
    ("a branch that is not taken", not_reached, {"a": "not reached 0", "b": "kept 1"}),
    ("a loop of length 0", length_0, {"a": "unused 0"}),
]


def in_new_thread(test):
    """Run a test in a new thread, as `check` does."""

    @functools.wraps(test)
    def run(**given):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(test, **given).result()

    return run


programs = pytest.mark.parametrize(
    ("make", "lines"), [each[1:] for each in PROGRAMS], ids=[each[0] for each in PROGRAMS]
)


def block(hosts, run):
    """Return the recording of a block and the calls made in it."""
    before = hosts.calls.copy()
    with jaxcb.record() as recorded:
        run()
    return recorded.recording, hosts.calls - before


def times(lines, factor):
    return {
        key: f"{status} {factor * int(calls)}"
        for key, (status, calls) in ((key, line.rsplit(" ", 1)) for key, line in lines.items())
    }


@programs
@in_new_thread
def test_every_block_with_a_run_reports_elided_calls(make, lines):
    hosts = Hosts()
    f = jax.jit(make(hosts))
    with jaxcb.record():
        for _ in range(3):
            recording, calls = block(hosts, lambda: f(X))
            compare(recording, lines, calls)


@programs
@in_new_thread
def test_block_without_a_run_reports_nothing(make, lines):
    hosts = Hosts()
    f = jax.jit(make(hosts))
    with jaxcb.record():
        f(X)
        recording, calls = block(hosts, lambda: None)
        compare(recording, {}, calls)


@programs
@in_new_thread
def test_outer_block_has_the_runs_of_all_inner_blocks(make, lines):
    hosts = Hosts()
    f = jax.jit(make(hosts))
    with jaxcb.record() as outer:
        block(hosts, lambda: f(X))
        block(hosts, lambda: [f(X), f(X)])
    compare(outer.recording, times(lines, 3), hosts.calls)


@programs
@in_new_thread
def test_program_compiled_in_one_block_and_run_in_the_next_is_reported_in_both(make, lines):
    hosts = Hosts()
    kept = []
    with jaxcb.record():
        recording, calls = block(
            hosts, lambda: kept.append(jax.jit(make(hosts)).lower(X).compile())
        )
        assert not calls
        elided = {key: line.rsplit(" ", 1)[0] for key, line in lines.items()}
        gone = ("unused", "optimized away")
        before = {k: f"{f if f in gone else 'not run'} 0" for k, f in elided.items()}
        compare(recording, before, calls)
        recording, calls = block(hosts, lambda: kept[0](X))
        # JAX does not report a run without calls and effects, so nothing shows that it happened.
        seen = calls or recording.outcomes
        compare(recording, lines if seen else {}, calls)


@programs
@in_new_thread
def test_program_that_runs_twice_in_a_block_has_twice_the_calls(make, lines):
    hosts = Hosts()
    f = jax.jit(make(hosts))
    with jaxcb.record():
        block(hosts, lambda: f(X))
        recording, calls = block(hosts, lambda: [f(X), f(X)])
        compare(recording, times(lines, 2), calls)


@programs
@in_new_thread
def test_block_after_an_unrecorded_run_reports_nothing_wrong(make, lines):
    """Without a recorder between the blocks, a status may be unknown, but not wrong."""
    hosts = Hosts()
    f = jax.jit(make(hosts))
    block(hosts, lambda: f(X))
    f(X)
    recording, calls = block(hosts, lambda: f(X))
    accepted = {}
    for key, line in lines.items():
        status, number = line.rsplit(" ", 1)
        accepted[key] = f"{status}|{'kept' if calls[key] else 'absent'}|unknown {number}"
    compare(recording, accepted, calls)
    assert +calls == {k: int(v.split()[-1]) for k, v in lines.items() if int(v.split()[-1])}


@programs
@in_new_thread
def test_program_compiled_before_any_block_is_not_reported_wrongly(make, lines):
    hosts = Hosts()
    f = jax.jit(make(hosts))
    f(X)
    recording, calls = block(hosts, lambda: f(X))
    accepted = {}
    for key, line in lines.items():
        status, number = line.rsplit(" ", 1)
        accepted[key] = f"{status}|{'kept' if calls[key] else 'absent'}|unknown {number}"
    compare(recording, accepted, calls)


def test_runs_are_counted_in_a_thread_where_jax_has_disabled_debug_nans():
    """Many JAX functions disable it temporarily, which leaves a hook of None in the thread."""
    hosts = Hosts()
    a, b = hosts.pure("a"), hosts.pure("b")
    f = jax.jit(lambda x: (b(x), a(x))[1])
    reported = []

    def run():
        with jax.debug_nans(False):
            pass
        reported.append(block(hosts, lambda: [f(X) for _ in range(3)]))
        reported.append(block(hosts, lambda: f(X)))

    with jaxcb.record():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    compare(reported[0][0], {"a": "kept 3", "b": "unused 0"}, reported[0][1])
    compare(reported[1][0], {"a": "kept 1", "b": "unused 0"}, reported[1][1])
