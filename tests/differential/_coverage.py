"""Which combinations of transformation and flavor the drawn programs had."""

from __future__ import annotations

from collections import Counter

from ._programs import METHODS, NESTS, Program
from ._strategy import combinations

ran: Counter[tuple[str, str]] = Counter()  # programs by combination; JAX ran them
refused: Counter[tuple[str, str]] = Counter()  # JAX raised
programs: Counter[str] = Counter()

_COLUMNS = ("pure", "io", "ordered io", "debug", "ordered debug")


def count(program: Program, error: type[BaseException] | None) -> None:
    """Notes one program that was compared."""
    programs["ran" if error is None else f"refused: {error.__name__}"] += 1
    (ran if error is None else refused).update(combinations(program))


def table() -> list[str]:
    """Lines of text: programs that ran (and that JAX refused) by combination."""
    if not programs:
        return []
    lines = [", ".join(f"{n} {what}" for what, n in sorted(programs.items()))]
    lines.append(f"{'':12}" + "".join(f"{column:>15}" for column in _COLUMNS))
    for nest in NESTS:
        cells = [f"{ran[nest, c]} ({refused[nest, c]})" for c in _COLUMNS]
        lines.append(f"{nest:12}" + "".join(f"{cell:>15}" for cell in cells))
    methods = [(str(m), ran["vmap", f"pure {m}"], refused["vmap", f"pure {m}"])
               for m in (*METHODS, None)]  # fmt: skip
    lines.append("vmap of pure: " + ", ".join(f"{m} {n} ({r})" for m, n, r in methods))
    return lines
