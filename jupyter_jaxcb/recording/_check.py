"""What was found when a callback was checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from html import escape
from typing import NamedTuple


class Finding(NamedTuple):
    """One way in which a host function breaks its contract.

    Attributes:
        kind: what of the contract: ``same inputs twice``, ``inputs unchanged``, ``vmap contract``.
        what: what it did, with the values that show it.
        advice: what to do about it.
    """

    kind: str
    what: str
    advice: str


@dataclasses.dataclass(frozen=True, repr=False)
class Check:
    """What `jupyter_jaxcb.check` found.

    Attributes:
        callback: its name.
        flavor: how it is registered.
        findings: what breaks its contract, with the values that show it.
        kept: what was looked at and found in order.
        left_out: what was not looked at, and why.
        vmap_methods: which methods answer as single calls do; tried for ufuncs that are called
            batch element by batch element, others may do anything with a batch.
    """

    callback: str
    flavor: str
    findings: tuple[Finding, ...] = ()
    kept: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vmap_methods: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        lines = [self._headline]
        for finding in self.findings:
            lines += [f"  ✕ {finding.kind}: {finding.what}", f"      {finding.advice}"]
        return "\n".join([*lines, *(f"  {line}" for line in self._rest())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<li>✕ <b>{escape(finding.kind)}</b>: {escape(finding.what)}<br>"
            f"{escape(finding.advice)}</li>"
            for finding in self.findings
        )
        rest = "".join(f"<li>{escape(line)}</li>" for line in self._rest())
        return f"<p>{escape(self._headline)}</p><ul>{rows}{rest}</ul>"

    @property
    def _headline(self) -> str:
        count = len(self.findings)
        found = "in order" if self.ok else f"{count} finding{'' if count == 1 else 's'}"
        return f"{self.callback} · {self.flavor} · {found}"

    def _rest(self) -> list[str]:
        lines = [f"✓ {', '.join(self.kept)}"] if self.kept else []
        lines += [f"not checked: {what} ({why})" for what, why in self.left_out.items()]
        right = [method for method, fits in self.vmap_methods.items() if fits]
        if right:
            lines.append(f"answers as single calls do under vmap_method {', '.join(right)}")
        return lines
