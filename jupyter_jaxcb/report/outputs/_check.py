"""The result of `check` as an output."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...recording import PAGES, Check, Checks, Finding, Html, element, html
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
        parts += [element("ul", *_left_out(found.left_out))] if found.left_out else []
    return output(parts, filter(None, spots))


def _one(one: Check, is_known: bool) -> Html:
    count = len(one.findings)
    verdict = (
        toned("ok", "✓ no findings")
        if one.ok
        else toned("error", f"✕ {count} finding{'' if count == 1 else 's'}")
    )
    name = element("b", place(one.callback) if is_known else one.callback)
    holds = [", ".join(one.kept)] if one.kept else []
    right = [method for method, fits in one.vmap_methods.items() if fits]
    if right:
        holds.append(f"same results as single calls with vmap_method {', '.join(right)}")
    return html(
        element("p", name, f" · {one.flavor} · ", verdict),
        element(
            "ul",
            *map(_finding, one.findings),
            *(element("li", toned("ok", "✓"), f" {line}") for line in holds),
            *(element("li", f"note: {note}") for note in one.notes),
            *_left_out(one.left_out),
        ),
    )


def _finding(finding: Finding) -> Html:
    kind = element("b", finding.kind)
    what = f": {finding.what}"
    return element("li", toned("error", "✕"), " ", kind, what, advice(finding.advice))


def _left_out(left_out: Mapping[str, str]) -> list[Html]:
    words = (f"– not checked: {what} ({why})" for what, why in left_out.items())
    return [element("li", toned("quiet", line)) for line in words]


def _page(found: Check | Checks) -> str:
    return check_output(found).html


PAGES[Check] = PAGES[Checks] = _page
