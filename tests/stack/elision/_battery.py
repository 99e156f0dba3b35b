"""The table of programs that every module of the battery fills, and the check of each row.

The expected values of a row were found without jupyter_jaxcb: the calls by counters in the host
functions, the rest from the jaxpr, the StableHLO and the optimized HLO. A row gives the number of
callbacks in the last two, so that a test fails if a JAX version compiles a program differently.
"""

import collections
import concurrent.futures
import dataclasses
import inspect
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

    def named(self, name):
        """Return a pure callback, or a jitted function that calls it."""
        callback = self.pure(name.removeprefix("jit_"))
        return jax.jit(lambda x: callback(x)) if name.startswith("jit_") else callback

    def io(self, name, result=lambda *xs: xs[0], **options):
        return jaxcb.io(result=result, **options)(self.host(name))

    def draw(self, name, **options):
        """Return an io callback without operands."""
        shape = jax.ShapeDtypeStruct((3,), np.float32)
        return jaxcb.io(result=shape, **options)(self.host(name, lambda: np.ones(3, np.float32)))

    def debug(self, name, **options):
        return jaxcb.debug(**options)(self.host(name, lambda *xs: None))

    def of_kind(self, kind, name="a"):
        """Return a callback that returns its operand, by the name of its flavor."""
        if kind == "debug":
            debug = self.debug(name)
            return lambda x: (debug(x), x)[1]
        ordered = {"ordered": True} if kind == "ordered" else {}
        return self.pure(name) if kind == "pure" else self.io(name, **ordered)


def rows_of(program, *args):
    """Return the summaries of a run by host function; their sites must have different ones."""
    with jaxcb.record() as recorded:
        jax.block_until_ready(jax.jit(program)(*args))
        jax.effects_barrier()
    return {row.site.function: row for row in summarize(recorded.recording)}


@dataclasses.dataclass(frozen=True)
class Row:
    """A program and the expected statuses of its callbacks.

    Attributes:
        name: a sentence, used as the test id.
        program: takes `Hosts`; returns a function to jit and its arguments, or None if it `ran`.
        lines: "site status calls, ...", or a function that returns this given the two counts in
            `hlo`. A call site is named by its host function; ``a@k`` if its line ends in
            ``# @k``; ``a:2`` is the second row of a line, which has one row per caller. In
            "a unused|absent 0" either status is accepted.
        hlo: the numbers of callbacks in the StableHLO and in the optimized HLO; None: not checked.
        notes: by call site, words that its notes must contain; "" if it must have none.
        known: call sites whose expected calls must be known.
        ran: whether the program runs by itself.
    """

    name: str
    program: Callable
    lines: str | Callable
    hlo: tuple[int, int] | None = None
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    known: str = ""
    ran: bool = False


def table(*args):
    """Return an empty list of rows, and a decorator that adds a program to it.

    The parameters of a decorated function are pure callbacks of these names, ``jit_a``, a jitted
    function that calls one, and ``h``, the `Hosts`. It returns a function to jit, with its
    arguments unless these are `args`.
    """
    rows = []

    def row(name, lines, hlo=None, **more):
        def add(program):
            parameters = inspect.signature(program).parameters.values()
            names = [one.name for one in parameters if one.default is one.empty]

            def of_hosts(h):
                made = program(*(h if name == "h" else h.named(name) for name in names))
                return made if made is None or isinstance(made, tuple) else (made, args)

            rows.append(Row(name, of_hosts, lines, hlo, **more))

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
        return pool.submit(_check, row).result()


def _check(row):
    hosts, counts = Hosts(), None
    with jaxcb.record() as recorded:
        made = row.program(hosts)
        if made is not None:
            f, args = made
            f = f if hasattr(f, "lower") else jax.jit(f)
            jax.block_until_ready(f(*args))
        jax.effects_barrier()
    calls = hosts.calls.copy()
    if row.hlo is not None or callable(row.lines):  # otherwise do not compile a second time
        counts = text_counts(f, args)
        assert row.hlo in (None, counts)
    found = compare(recorded.recording, row.lines, calls, counts)
    for key, words in row.notes.items():
        notes = " ".join(found[key].notes)
        assert words in notes and bool(words) == bool(notes), (key, notes)
    for key in row.known.split():
        assert found[key].expected == found[key].calls, key
    return found


def expected_lines(lines):
    """Return a mapping from each call site in `Row.lines` to its statuses and calls."""
    return dict(line.split(" ", 1) for line in lines.split(", ") if line)


def compare(recording, lines, calls, counts=None):
    """Check that the statuses in a recording are the expected ones; return the summaries."""
    found = by_key(recording)
    shown = {key: f"{summary.status.words} {summary.calls}" for key, summary in found.items()}
    true = {}
    for key, line in expected_lines(lines(counts) if callable(lines) else lines).items():
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
