"""List the compile times of a recording's programs and the host calls in each of them."""

from __future__ import annotations

from ...recording import Compilation, Outcome, Recording, on_one_line
from ..summary import Rows, counted, time_words


def cost_to_text(recording: Recording) -> str:
    """Return a line for each compiled program, followed by a line for each of its callbacks.

    Returns:
        Text without a final newline; empty when nothing was compiled.
    """
    lines = []
    rows = Rows((outcome.site for outcome in recording.outcomes), recording.where)
    for compilation in recording.compilations:
        arguments = ", ".join(map(str, compilation.arguments))
        lines.append(
            f"{compilation.program.name} ({arguments}): lowered in "
            f"{time_words(compilation.lower_ns)}, compiled in {time_words(compilation.compile_ns)}"
        )
        own = [one for one in recording.outcomes if one.program == compilation.program]
        lines += [f"  {_line(recording, compilation, outcome, rows)}" for outcome in own]
    return "\n".join(map(on_one_line, lines))


def _line(recording: Recording, compilation: Compilation, outcome: Outcome, rows: Rows) -> str:
    site = outcome.site
    methods = {
        level.method
        for fact in recording.lowered
        if fact.site == site and fact.program == compilation.program
        for level in fact.levels
    }
    calls = counted(outcome.instructions, "host call")
    return ", ".join(
        [
            f"{rows.where(site)}: {site.function}",
            *sorted(methods),
            f"{calls} in the program",
        ]
    )
