"""Random programs compute what their text means, and their recordings report what happened.

Also the status and the expected calls of each call site, and what ``explain`` predicts.
"""

import dataclasses
import itertools

import jax
import pytest

from ._draw import Draw
from ._judged import judged, refused
from ._program import TOGETHER, walk
from ._reach import paths
from ._run import precision, run_ours
from ._shrink import shrink
from ._typed import DTYPES, METHODS

pytestmark = pytest.mark.slow

# Together they show every mistake of tests/mutants.txt whose name begins with "program-".
SEEDS = (*range(24), 38, 56, 64, 133, 1000, 1432)
BLOCK = 10


@pytest.fixture(autouse=True)
def _programs_are_dropped():
    yield
    jax.clear_caches()


@pytest.mark.parametrize("first", range(0, len(SEEDS), BLOCK))
def test_results_calls_order_recordings_and_reports_are_right(first):
    seeds = SEEDS[first : first + BLOCK]
    done = {seed: judged(Draw(seed).program(), explain=seed % 2 == 0) for seed in seeds}
    found = {seed: findings for seed, (_, findings) in done.items() if findings}
    assert not found
    assert sum(refused(ran) for ran, _ in done.values()) <= BLOCK / 2


def test_planted_error_is_found_and_the_next_run_is_right():
    failed = 0
    for program in map(_runs_once, range(1000, 1004)):
        for name in _called(program):
            planted = dataclasses.replace(program, fail=(name, 1))
            for each in (planted, program):
                assert not judged(each, explain=False, compare=False)[1]
            failed += 1
    assert failed >= 4


def _runs_once(seed):
    program = Draw(seed).program()
    return dataclasses.replace(program, inputs=program.inputs[:1], blocks="one", fail=None)


def _called(program):
    """Return the first host functions that a program calls, except prints, which cannot raise."""
    with precision(program.x64):
        counts = run_ours(program, explain=False).runs[0].counts
    return [host.name for host in program.hosts if host.flavor != "print" and counts[host.name]][:2]


def test_shrunk_program_still_calls_the_host_function():
    program = next(program for program in map(_runs_once, range(1000, 1010)) if _called(program))
    name = _called(program)[0]

    def calls(candidate):
        with precision(candidate.x64):
            return name in run_ours(candidate, explain=False).runs[0].counts

    smallest = shrink(program, calls, tries=60)
    assert calls(smallest)
    assert len(_statements(smallest)) < len(_statements(program))


def _statements(program):
    return [statement for function in walk(program.functions()) for statement in function.body]


KINDS = ("pure", "io", "ordered io", "debug", "ordered debug")
AROUND = (
    "jit", "jax.vmap", "lax.scan", "lax.map", "fori_loop", "while_loop", "predicate", "lax.cond",
    "lax.switch", "jax.grad", "jax.vjp", "jax.jvp", "linearize", "custom_jvp", "custom_vjp",
    "checkpoint",
)  # fmt: skip
ALONE = ("print", "buffer", "tap", "queued", "x64", "jit", "eager", "aot", "late", "raises")


def test_every_callback_is_drawn_under_every_transformation():
    missing = {*itertools.product(KINDS, AROUND), *ALONE, *DTYPES} - {("ordered io", "jax.vmap")}
    missing |= set(itertools.product(METHODS, ["jax.vmap"]))
    missing |= set(itertools.product(["masked"], ["pure", "io", "debug"]))
    missing |= set(itertools.product(["io", "debug"], TOGETHER, ["jax.vmap", "jax.grad"]))
    missing |= set(itertools.product(["custom_jvp rule", "custom_vjp rule"], ["io", "debug"]))
    for seed in range(3000):
        missing -= set(_features(Draw(seed).program()))
        if not missing:
            break
    assert not missing


def _features(program):
    hosts = {host.name: host for host in program.hosts}
    yield from (program.mode, program.blocks, "x64" * program.x64, "raises" * bool(program.fail))
    for path in paths(program):
        host = hosts[path.host]
        for around in path.flags:
            yield "ordered " * host.ordered + host.flavor, around
            yield host.method, around
            yield host.flavor, host.method, around
    for host in program.hosts:
        yield from (host.flavor, "queued" * host.queued)
        if host.typed:
            yield "masked" * host.typed.masked, host.flavor
            yield from (dtype for dtype, _ in (*host.typed.leaves, *host.typed.results))
    for helper in program.helpers:
        if helper.observer:
            yield f"{helper.decorator} rule", hosts[helper.observer.split("(")[0]].flavor
