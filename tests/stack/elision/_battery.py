"""The table of programs that every module of the battery fills, and the check of each row.

The expected values of a row were found without jupyter_jaxcb: the calls by counters in the host
functions, the rest from the jaxpr, the StableHLO and the optimized HLO. A row gives the number of
callbacks in the last two, so that a test fails if a JAX version compiles a program differently.
"""

import collections
import concurrent.futures
import dataclasses
import re
import threading
from collections.abc import Callable

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize

CALLBACK = re.compile(r"(?:@|custom_call_target=\")xla_\w*python_\w*callback")


class Hosts:
    """Make callbacks whose host functions count their calls by name."""

    def __init__(self):
        self.calls = collections.Counter()
        self._lock = threading.Lock()

    def _count(self, name):
        with self._lock:
            self.calls[name] += 1

    def host(self, name, function=lambda *xs: np.asarray(xs[0]) + 0):
        def counted(*xs):
            self._count(name)
            return function(*xs)

        counted.__name__ = name
        return counted

    def pure(self, name, result=lambda *xs: xs[0], vmap_method="sequential", **options):
        return jaxcb.pure(result=result, vmap_method=vmap_method)(self.host(name, **options))

    def io(self, name, result=lambda *xs: xs[0], **options):
        return jaxcb.io(result=result, **options)(self.host(name))

    def draw(self, name, **options):
        """Return an io callback without operands."""
        shape = jax.ShapeDtypeStruct((3,), np.float32)
        return jaxcb.io(result=shape, **options)(self.host(name, lambda: np.ones(3, np.float32)))

    def debug(self, name, **options):
        return jaxcb.debug(**options)(self.host(name, lambda *xs: None))


@dataclasses.dataclass(frozen=True)
class Row:
    """A program and the expected statuses of its callbacks.

    Attributes:
        name: a sentence, used as the test id.
        program: takes `Hosts`; runs the program, or returns a function to jit and its arguments.
        lines: maps each call site to "status calls", or is a function that returns this mapping
            given the two counts in `hlo`. A call site is named by its host function; ``a@k`` if
            its line ends in ``# @k``; ``a:2`` is the second row of a line, which has one row per
            caller. In "unused|absent 0" either status is accepted.
        hlo: the numbers of callbacks in the StableHLO and in the optimized HLO; None: not checked.
        notes: by call site, words that its notes must contain.
        known: call sites whose expected calls must be known.
    """

    name: str
    program: Callable
    lines: dict[str, str] | Callable
    hlo: tuple[int, int] | None = None
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    known: str = ""


def table():
    """Return an empty list of rows, and a decorator that adds a program to it."""
    rows = []

    def row(name, lines, hlo=None, **more):
        def add(program):
            rows.append(Row(name, program, lines, hlo, **more))
            return program

        return add

    return rows, row


def each(rows):
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


def text_counts(f, args):
    """Return the numbers of callbacks in the StableHLO and in the optimized HLO."""
    lowered = f.lower(*args)
    compiled = lowered.compile()
    return tuple(len(CALLBACK.findall(text)) for text in (lowered.as_text(), compiled.as_text()))


def by_key(recording):
    """Return the summaries by the names of call sites in `Row.lines`."""
    found = {}
    for summary in summarize(recording):
        key, _, mark = summary.site.source.partition("# @")
        key = f"{summary.site.function}@{mark}" if mark else summary.site.function
        number = 1 + sum(other.partition(":")[0] == key for other in found)
        found[key if number == 1 else f"{key}:{number}"] = summary
    return found


def check(row):
    """Check a row in a new thread: runs are counted differently depending on JAX's thread state."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(_check, row).result()


def _check(row):
    hosts, made, counts = Hosts(), None, None
    with jaxcb.record() as recorded:
        made = row.program(hosts)
        if made is not None:
            f, args = made
            f = f if hasattr(f, "lower") else jax.jit(f)
            jax.block_until_ready(f(*args))
        jax.effects_barrier()
    calls = hosts.calls.copy()
    if made is not None:
        if row.hlo is not None or callable(row.lines):  # otherwise do not compile a second time
            counts = text_counts(f, args)
            assert row.hlo in (None, counts)
    found = compare(recorded.recording, row.lines, calls, counts)
    for key, words in row.notes.items():
        assert words in " ".join(found[key].notes), (key, found[key].notes)
    for key in row.known.split():
        assert found[key].expected == found[key].calls, key


def compare(recording, lines, calls, counts=None):
    """Check that the statuses in a recording are the expected ones; return the summaries."""
    lines = lines(counts) if callable(lines) else lines
    found = by_key(recording)
    shown = {key: f"{summary.status.words} {summary.calls}" for key, summary in found.items()}
    true = {}
    for key, line in lines.items():
        statuses, _, number = line.rpartition(" ")
        status = found[key].status.words if key in found else "absent"
        if status not in statuses.split("|"):
            true[key] = line
        elif key in found:
            true[key] = f"{status} {number}"
    assert shown == true, (shown, true)
    recorded = collections.Counter()
    for key, summary in found.items():
        recorded[re.split("[@:]", key)[0]] += summary.calls
    assert +recorded == +calls
    for key, summary in found.items():
        if summary.status is not Status.KEPT:
            assert summary.reason, key
            assert summary.advice or summary.consequence == "not_needed", key
    wrong = {
        key: f"{summary.calls} calls, {summary.expected} expected"
        for key, summary in found.items()
        if summary.expected not in (None, summary.calls)
    }
    assert not wrong, wrong
    return found
