"""Check the contract of a host function by running it."""

from __future__ import annotations

import contextlib
import functools
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import jax_compat
from ...capabilities.lint import impurities, jax_inside
from ...recording import Check, Checks, Finding, Frame, on_one_line
from ...register import Callback
from ...stack.errors import message_of
from ...stack.results import ResultError
from ...stack.trace import enabled, is_cell
from ..record import Unrecorded
from . import _derivative, _linear, _rows, _threads, _vmap
from ._compare import REPEATED, difference
from ._subject import OutOfTime, Subject, one_line
from ._vmap import BATCHED, ElementSamples, matches_single_calls, takes_any_batch, vmap_findings
from ._wrapped import CallsOf

_TWICE = "same inputs twice"

_NOT_COMPARED = {  # derivatives by kind of rule
    "finite": "the rule is finite differences",
    "residual": "it follows from the residual",
}


def check(
    callback: Callable[..., Any], *args: Any, tolerance: float = 0.0, **kwargs: Any
) -> Check | Checks:
    """Run a registered callback on these arguments and report where it breaks its contract.

    A pure callback is run about ten times: on the same inputs, on other inputs in between, on
    read-only and on writable arrays. It must return the same result for the same inputs, leave its
    inputs unchanged, return what it declares, and not use JAX. A buffer callback must also write
    its whole output. Output that this thread prints during these runs is not shown. A callback of
    flavor io or debug is run once.

    If its `vmap_method` passes whole batches, or if it is a ufunc, the function is run on about ten
    batches, whose results are compared with those of single calls. (A Python number among arrays is
    taken as unbatched.) With other methods it is not given batches, because it need not accept
    them.

    If it has a derivative rule, or returns its gradient, the derivative is compared with finite
    differences, which take nine runs for each argument, or 25 if the function is not smooth. The
    first four arguments are checked one by one, the others together.

    If it is registered with ``linear=``, random combinations of vectors at three scales test
    whether it is linear, and ``sum(f(b) * ct) == sum(b * transposed(ct))`` whether its transpose is
    right: a wrong sign, a conjugate too many or too few, and the function itself are named as
    such. A residual must be zero at the function's result, and ``-b`` at zero.

    If it is registered with ``partitioned=``, it is called with the halves of the rows, and with
    each row if there are at most eight: parts must give the rows that all rows together give.

    If it is registered with ``executor="threads"``, or another pool of threads, it is called with
    up to three inputs at once in these threads, which take turns at each operation of Python. Each
    call must return what it returns alone.

    After ten seconds no further run begins, and the remaining checks are skipped. Nothing in this
    process is recorded during the check.

    Any other function (a lambda, a `functools.partial`, a jitted or transformed function) is run
    once, with ``jax.disable_jit``, to find the callbacks that it calls. Each of them is then
    checked on the arguments of its first call: under vmap those of the first batch element, under
    a derivative without tangents. What the function does with the results is not checked. Callbacks
    that it calls only while JAX traces (in a `jax.checkpoint`), taps, and callbacks that are not
    registered (`pure_callback`, JAX's own) are not checked either.

    Args:
        callback: a callback made by a decorator or ``%%jax_callback``, or a function that calls
            some.
        *args: positional arguments of the call to check.
        tolerance: the error that a derivative may have, relative to the slope and to the result:
            ``1e-3`` for a solver that stops at this accuracy. At least 0.007, which differences
            need, is allowed of the slope. Where a rule says that a result does not depend on an
            argument, such as the starting point of an iteration, a slope is accepted that is below
            the square root of the precision of the result.
        **kwargs: keyword arguments of the call to check.

    Returns:
        A `Check`, with `ok` and `findings`; for a function that calls callbacks `Checks`, which
        has these too.

    Raises:
        TypeError: `callback` neither is a registered callback nor calls one, or the arguments do
            not fit it.
        Exception: any error of a function that raises before it calls a callback.
        ValueError: its declared result cannot be evaluated for these arguments.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.pure(result="x", vmap_method="expand_dims")
    ... def scaled(x):
    ...     return x / x.max()
    >>> found = jaxcb.check(scaled, np.float32([1.0, 2.0]))
    >>> found.ok, found.findings[0].kind
    (False, 'vmap contract')
    """
    __tracebackhide__ = True
    if not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 1:
        raise ValueError(
            f"cannot check with tolerance={tolerance!r}: it is a relative error. Pass a number "
            "from 0 to below 1, such as 1e-3. (If the function has a parameter of that name, pass "
            "it by position.)"
        )
    if not callable(callback) or (isinstance(callback, Callback) and callback.flavor == "tap"):
        raise TypeError(
            f"cannot check {on_one_line(repr(callback))}: it is not a callback of flavor pure, "
            "buffer, io or debug. "
            "Write check(f, x) with a function f registered by @jaxcb.pure(...)."
        )
    with Unrecorded(), enabled():
        if isinstance(callback, Callback):
            return _Checking(Subject(callback, args, kwargs, tolerance)).check()
        return _check_callbacks_of(CallsOf(callback, args, kwargs), tolerance)


def _check_callbacks_of(calls: CallsOf, tolerance: float) -> Checks:
    __tracebackhide__ = True
    if not (calls.found or calls.unknown):
        raise TypeError(
            f"cannot check {calls.name}: called with these arguments, it calls no registered "
            "callback of flavor pure, buffer, io or debug. Register the host function by "
            "@jaxcb.pure(...). Write check(f, x) with that callback, or a function that calls it."
        )
    subjects = [Subject(one, *given, tolerance) for one, given in calls.found.items()]
    checks = [_Checking(one).check() for one in subjects]
    left_out = {one.host.name: why for one, why in calls.unknown.items()}
    if calls.rest:
        left_out[f"what {calls.name} calls next"] = calls.rest
    return Checks(calls.name, tuple(checks), left_out)


class _Checking:
    """Runs the checks of one callback, one after the other."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._findings: list[Finding] = []
        self._kept: list[str] = []
        self._left_out: dict[str, str] = {}
        self._methods: dict[str, bool] = {}
        self._result: list[np.ndarray] = []

    @functools.cached_property
    def _elements(self) -> ElementSamples:
        return ElementSamples(self._subject)

    def check(self) -> Check:
        subject = self._subject
        repeatable = subject.callback.flavor in ("pure", "buffer")
        optional = self._optional()
        in_threads = _threads.has_threads(subject)
        if in_threads and not repeatable:
            self._left_out[_threads.KIND] = f"an {subject.callback.flavor} function is called once"
        if repeatable := repeatable and not subject.settings.get("has_side_effect"):
            self._run("source", self._source)
        if self._run("declared result", self._declared) and repeatable:
            repeats = self._run(_TWICE, self._twice)
            self._add_misfit()
            self._run("inputs unchanged", self._unchanged)
            self._run("no JAX inside", self._no_jax)
            if repeats:
                self._run(_vmap.KIND, self._vmap)
                self._run(_derivative.KIND, self._derivative)
                for kind, run in optional.items():
                    self._run(kind, run)
                repeats = self._repeats_at_the_end()
            if repeats and in_threads:
                self._run(_threads.KIND, lambda: _threads.threads_findings(self._elements))
            if not repeats:
                self._discard(_vmap.KIND, _derivative.KIND, *optional)
            if not any(one.what.startswith("it prints") for one in self._findings):
                self._run("no printing", self._printed)
        return Check(
            subject.name,
            subject.callback.flavor,
            tuple(self._findings),
            tuple(self._kept),
            self._left_out,
            self._methods,
        )

    def _optional(self) -> dict[str, Callable[[], Iterator[Finding | str]]]:
        """Return the checks of options that the callback has, by their kinds."""
        checks = {}
        if self._subject.callback.host.derivative is not None:
            checks[_linear.KIND] = lambda: _linear.linear_findings(self._subject)
        if self._subject.settings.get("partitioned") and self._subject.avals:
            checks[_rows.KIND] = lambda: _rows.rows_findings(self._elements)
        return checks

    def _run(self, kind: str, check: Callable[[], Iterator[Finding | str]]) -> bool:
        """Run one check and keep its findings; return whether there are none.

        Args:
            kind: of the check.
            check: yields findings, and texts that say why something was not checked.
        """
        found: list[Finding | str] = []
        try:
            found.extend(check())
        except OutOfTime as error:
            found.append(str(error))
        findings = [one for one in found if isinstance(one, Finding)]
        skipped = [one for one in found if isinstance(one, str)]
        self._findings += findings
        if skipped:
            self._left_out[kind] = "; ".join(skipped)
        elif not findings:
            self._kept.append(kind)
        return not findings

    def _repeats_at_the_end(self) -> bool:
        """Whether it still returns its first result after all other calls."""
        try:
            found = list(self._again(" after all other calls"))
        except OutOfTime:
            return True
        self._findings += found
        if found:
            self._kept.remove(_TWICE)
        return not found

    def _add_misfit(self) -> None:
        """Add a finding if it did not return the declared result for made-up values."""
        if "_elements" in self.__dict__ and self._elements.misfit:
            self._kept.remove("declared result")
            advice = (
                "A compiled program has the same shapes and dtypes for all values: pad the result "
                "or convert it to what is declared."
            )
            self._findings.append(Finding("declared result", self._elements.misfit, advice))

    def _discard(self, *kinds: str) -> None:
        """Discard checks that compare results, because results are not repeatable."""
        self._findings = [one for one in self._findings if one.kind not in kinds]
        self._kept = [kind for kind in self._kept if kind not in kinds]
        self._left_out |= dict.fromkeys(kinds, "its results are not repeatable")
        self._methods = {}

    def _source(self) -> Iterator[Finding]:
        for one in impurities(self._subject.callback.host.current, self._subject.leading):
            yield Finding("source", f"it {one.does}: {one.what}, {one.where}", f"{one.advice}.")

    def _declared(self) -> Iterator[Finding]:
        """Run it for the first time and check its result."""
        subject = self._subject
        try:
            self._result = subject.run()
        except ResultError as error:
            yield Finding(
                "declared result",
                str(error),
                "Declare what it returns, or return what it declares.",
            )
        except Exception as error:
            if isinstance(error, ValueError) and "read-only" in message_of(error):
                yield _writes(f"it fails on read-only arrays: {message_of(error)}")
            else:
                yield Finding(
                    "declared result",
                    f"it fails on these arguments: {one_line(error)}",
                    "Call the undecorated function with NumPy arrays to see where.",
                )

    def _twice(self) -> Iterator[Finding]:
        """Run it again, and once more after other inputs, which it may remember."""
        found = list(self._again(""))
        if not found:
            for values in list(zip(*self._elements.variants, strict=True))[1:]:
                self._elements.takes(list(values))
            found = list(self._again(" after calls with other arguments"))
        yield from found

    def _again(self, when: str) -> Iterator[Finding]:
        subject = self._subject
        try:
            wrong = difference(subject.run(), self._result, subject.paths, REPEATED)
            what = f"a second call with the same inputs{when} returns {wrong}" if wrong else ""
        except Exception as error:
            what = f"a second call with the same inputs{when} fails: {one_line(error)}"
        if what:
            yield Finding(
                _TWICE,
                what,
                "Register it as io, which is called as often as the program says, or pass what "
                "changes as an argument.",
            )

    def _unchanged(self) -> Iterator[Finding]:
        """Run it on writable arrays."""
        subject = self._subject
        operands = [array.copy() for array in subject.operands]
        try:
            subject.run(operands, writable=True)
        except Exception as error:
            if not list(self._again("")):  # else it fails on any arrays
                yield Finding(
                    "inputs unchanged",
                    f"it fails on writable arrays: {one_line(error)}",
                    "Accept both read-only arrays, as from programs, and writable ones.",
                )
            return
        wrong = difference(operands, subject.operands, subject.names, 1.0)
        if wrong:
            yield _writes(f"after the call its input is {wrong}")

    def _printed(self) -> Iterator[Finding]:
        text = self._subject.printed.strip().partition("\n")[0]
        if text:
            yield Finding(
                "no printing",
                f"it prints {text[:60]!r}",
                "Print in a debug callback (jaxcb.debug), or register it as io.",
            )

    def _no_jax(self) -> Iterator[Finding | str]:
        subject = self._subject
        if subject.settings.get("arrays") == "jax":
            yield 'it is registered with arrays="jax"'
            return
        use = jax_inside(subject.callback.host)
        seen = None if use else jax_compat.first_operation(self._call)
        if use or seen:
            yield Finding(
                "no JAX inside",
                f"it uses JAX: {use or _where(*seen)}",  # type: ignore[misc]
                "Use NumPy in the host function: JAX may deadlock there.",
            )

    def _call(self) -> None:
        with contextlib.suppress(Exception):  # reported by the checks that compare results
            self._subject.call()

    def _vmap(self) -> Iterator[Finding | str]:
        subject = self._subject
        method = subject.settings.get("vmap_method")
        if method in BATCHED:
            yield from vmap_findings(self._elements, method)
        elif not subject.operands or not subject.avals:
            yield "no array to map over"
        elif not takes_any_batch(subject.callback.host.current):
            each = "each batch element is a separate call"
            yield f"{method}: {each}" if method else "vmap_method=None: vmap is refused"
        else:
            for method in BATCHED:
                self._methods[method] = matches_single_calls(self._elements, method)

    def _derivative(self) -> Iterator[Finding | str]:
        rule = self._subject.callback.rule
        if rule in ("jvp", "vjp", "gradient"):
            yield from _derivative.derivative_findings(self._subject, self._result)
        else:
            yield _NOT_COMPARED.get(rule or "", "it has no rule")


def _writes(what: str) -> Finding:
    return Finding(
        "inputs unchanged",
        what,
        "Copy an argument before writing to it, as in np.array(x), or register the function as "
        "buffer, which writes into its result.",
    )


def _where(file: str, line: int) -> str:
    return Frame("", file, line, cell=is_cell(file)).where
