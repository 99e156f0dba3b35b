"""The result of `check` as an output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

from ...recording import PAGES, Check, Checks, Finding
from ._output import Output, Spot, advice, output, place, toned


def check_output(
    found: Check | Checks, spot: Callable[[str], Spot | None] = lambda callback: None
) -> Output:
    """Return findings with advice, and what holds or was not checked.

    Args:
        found: the result.
        spot: the line where a callback is defined; None: unknown.
    """
    checks = (found,) if isinstance(found, Check) else found.checks
    spots = [spot(one.callback) for one in checks]
    parts = [_one(one, of is not None) for one, of in zip(checks, spots, strict=True)]
    if isinstance(found, Checks):
        parts += [f"<ul>{_left_out(found.left_out)}</ul>"] if found.left_out else []
    return output(parts, filter(None, spots))


def _one(one: Check, is_known: bool) -> str:
    count = len(one.findings)
    verdict = (
        toned("ok", "✓ no findings")
        if one.ok
        else toned("error", f"✕ {count} finding{'' if count == 1 else 's'}")
    )
    name = place(one.callback) if is_known else escape(one.callback)
    holds = [f"✓ {', '.join(one.kept)}"] if one.kept else []
    right = [method for method, fits in one.vmap_methods.items() if fits]
    if right:
        holds.append(f"✓ same results as single calls with vmap_method {', '.join(right)}")
    items = [
        *map(_finding, one.findings),
        *(f"<li>{toned('ok', line[0])}{escape(line[1:])}</li>" for line in holds),
    ]
    return (
        f"<p><b>{name}</b> · {escape(one.flavor)} · {verdict}</p>"
        f"<ul>{''.join(items)}{_left_out(one.left_out)}</ul>"
    )


def _finding(finding: Finding) -> str:
    what = f"✕ <b>{escape(finding.kind)}</b>: {escape(finding.what)}"
    return f"<li>{what.replace('✕', toned('error', '✕'), 1)}{advice(finding.advice)}</li>"


def _left_out(left_out: Mapping[str, str]) -> str:
    words = (f"– not checked: {what} ({why})" for what, why in left_out.items())
    return "".join(f"<li>{toned('quiet', line)}</li>" for line in words)


def _page(found: Check | Checks) -> str:
    return check_output(found).html


PAGES[Check] = PAGES[Checks] = _page
