"""The result of checking a callback."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from ._shown import PAGES, visible


class Finding(NamedTuple):
    """One violation of the contract of a host function.

    Attributes:
        kind: the violated rule: ``same inputs twice``, ``inputs unchanged``, ``vmap contract``.
        what: what the function did, with values.
        advice: what to do about it.
    """

    kind: str
    what: str
    advice: str


@dataclasses.dataclass(frozen=True, repr=False)
class Check:
    """The result of `jupyter_jaxcb.check`.

    Attributes:
        callback: name of the callback.
        flavor: its flavor.
        findings: violations of its contract.
        kept: the rules that were checked and hold.
        left_out: the rules that were not checked, and why.
        vmap_methods: whether each vmap method gives the results of single calls. Only tried for
            ufuncs that are called for each batch element; other functions may do anything with a
            batch.
        notes: what is worth knowing, and breaks no contract: distinct numbers in float64 that
            become equal in the declared dtype.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> found = jaxcb.check(jaxcb.pure(lambda x: 2 * x, result="x"), np.float32(3))
    >>> found.ok, found.flavor, found.findings
    (True, 'pure', ())
    """

    callback: str
    flavor: str
    findings: tuple[Finding, ...] = ()
    kept: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vmap_methods: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __repr__(self) -> str:
        lines = [self._headline]
        for finding in self.findings:
            lines += [f"  ✕ {finding.kind}: {finding.what}", f"      {finding.advice}"]
        return visible("\n".join([*lines, *(f"  {line}" for line in self._rest())]))

    def _repr_html_(self) -> str:
        return PAGES[Check](self)

    @property
    def _headline(self) -> str:
        count = len(self.findings)
        found = "no findings" if self.ok else f"{count} finding{'' if count == 1 else 's'}"
        return f"{self.callback} · {self.flavor} · {found}"

    def _rest(self) -> list[str]:
        lines = [f"✓ {', '.join(self.kept)}"] if self.kept else []
        lines += [f"note: {one}" for one in self.notes]
        lines += [f"not checked: {what} ({why})" for what, why in self.left_out.items()]
        right = [method for method, fits in self.vmap_methods.items() if fits]
        if right:
            lines.append(f"same results as single calls with vmap_method {', '.join(right)}")
        return lines


@dataclasses.dataclass(frozen=True, repr=False)
class Checks:
    """The result of `jupyter_jaxcb.check` for a function that calls callbacks.

    Attributes:
        function: name of the function.
        checks: the check of each callback that it called, in the order of their first calls.
        left_out: what was not checked, and why.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result="x")
    >>> found = jaxcb.check(lambda x: double(x) + 1, np.float32(3))
    >>> found.ok, len(found.checks)
    (True, 1)
    """

    function: str
    checks: tuple[Check, ...]
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all checks."""
        return tuple(finding for one in self.checks for finding in one.findings)

    def __repr__(self) -> str:
        return visible("\n".join([*map(repr, self.checks), *self._rest()]))

    def _repr_html_(self) -> str:
        return PAGES[Checks](self)

    def _rest(self) -> list[str]:
        return [f"not checked: {what} ({why})" for what, why in self.left_out.items()]
