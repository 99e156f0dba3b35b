"""The displays of outputs that are not host traces, with links to the lines that they name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from ...diagnostics import Watch
from ...recording import Check, Checks, Matrix, unnumbered
from ...register import Callback
from ...report import (
    OUTPUT_TYPE,
    Output,
    Spot,
    SpotView,
    check_output,
    matrix_output,
    matrix_to_text,
)
from ._origins import Origins

_SCHEMA = 1


def output_bundle(text: str, output: Output, origins: Origins) -> tuple[dict, dict]:
    """Return data, which is the same in every run, and metadata with ids and numbers of cells."""
    data = {"text/plain": text, "text/html": output.html, OUTPUT_TYPE: {"schema": _SCHEMA}}
    return data, {OUTPUT_TYPE: {"places": [_place(spot, origins) for spot in output.spots]}}


def _place(spot: Spot, origins: Origins) -> SpotView:
    cell, line, number = origins.place(spot.file, spot.line)
    shown = number if spot.numbered else 0
    return {"cell": cell, "line": line, "source": spot.source, "number": shown}


def watch_bundle(seen: Watch, above: str, origins: Origins) -> tuple[dict, dict]:
    """Return data and metadata of the display of what a block saw, with text `above` it."""
    page, spots = seen.page(above)
    text = f"{above}\n{seen}" if above else str(seen)
    places = tuple(Spot(*spot, numbered=False) for spot in spots)
    return output_bundle(text, Output(page, places), origins)


def matrix_bundle(matrix: Matrix, origins: Origins) -> tuple[dict, dict]:
    """Return data and metadata of the display of a matrix."""
    columns = {name: unnumbered(each) for name, each in matrix.columns.items()}
    matrix = dataclasses.replace(matrix, columns=columns)
    return output_bundle(matrix_to_text(matrix), matrix_output(matrix), origins)


def check_bundle(
    found: Check | Checks, origins: Origins, callbacks: Callable[[], Mapping[str, Callback]]
) -> tuple[dict, dict]:
    """Return data and metadata of the display of a check."""

    def spot(name: str) -> Spot | None:
        known = (one for one in callbacks().values() if one.host.name == name)
        code = getattr(getattr(next(known, None), "__wrapped__", None), "__code__", None)
        return code and Spot(code.co_filename, code.co_firstlineno, numbered=False)

    return output_bundle(repr(found), check_output(found, spot), origins)
