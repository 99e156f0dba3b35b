"""What tells the rows of a report apart: column, host function, callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ...recording import Frame, Site

_LONGEST = 120  # characters that are said of callers

_Place = tuple[str, int, int]
_Named = tuple[str, str]  # function and flavor


class Rows:
    """Some sites, of each of which a report has a row.

    Args:
        sites: of the report.
        where: says where a site is, or a frame that led there; left out, a frame is in "another
            cell" where it is in another one than its site.
    """

    def __init__(
        self, sites: Iterable[Site], where: Callable[[Site | Frame], str] | None = None
    ) -> None:
        self._where = where
        self._columns: dict[_Place, set[_Named]] = {}
        groups: dict[tuple[_Place, _Named], list[Site]] = {}
        for site in dict.fromkeys(sites):
            place, named = _place(site), (site.function, site.flavor)
            self._columns.setdefault(place, set()).add(named)
            groups.setdefault((place, named), []).append(site)
        self._lines = Counter(place[:2] for place, _ in groups)
        self._callers: dict[Site, list[str]] = {}
        for group in groups.values():
            self._tell_apart(group)

    def name(self, site: Site) -> str:
        """What tells it from others at its very column: the host function's, the flavor too."""
        names = self._columns[_place(site)]
        if len(names) == 1:
            return ""
        alone = sum(function == site.function for function, _ in names) == 1
        return site.function if alone else f"{site.flavor} {site.function}"

    def where(self, site: Site, *, column: bool = True) -> str:
        """Where a site is: with its column (from 1) and its callers where others need these."""
        alone = self._lines[site.file, site.line] == 1 or not column
        where = self._say(site) if alone else _with_column(self._say(site), site.column)
        callers = self.callers(site)
        return f"{where} ({callers})" if callers else where

    def callers(self, site: Site) -> str:
        """Those that tell it from others with its line and host function: ``from line 6``.

        Libraries come first, ``via solve, mylib.py:8``. Empty if there are no others.
        """
        words = ", ".join(self._callers.get(site, ()))
        return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"

    def _tell_apart(self, group: list[Site]) -> None:
        """Names the frames, from the innermost on, at which the sites of `group` part."""
        parted = [(group, 0)]
        while parted:
            sites, depth = parted.pop()
            paths: dict[tuple[str, int] | None, list[Site]] = {}
            for site in sites if len(sites) > 1 else ():
                more = site.callers[depth : depth + 1]
                path = self._words(site, *more) if more else None
                paths.setdefault(path, []).append(site)
            lines = Counter(path[0] for path in paths if path)
            for path, own in paths.items():
                if path is not None:
                    words, column = path
                    told = _with_column(words, column) if lines[words] > 1 else words
                    for site in own if len(paths) > 1 else ():
                        self._callers.setdefault(site, []).append(told)
                    parted.append((own, depth + 1))

    def _words(self, site: Site, frame: Frame) -> tuple[str, int]:
        named = "" if frame.function.startswith("<") else f"{frame.function}, "
        where = f"line {frame.line}"
        if frame.cell and self._where is None:
            where += ", another cell" * (frame.file != site.file)
        elif frame.cell or frame.file != site.file:
            where = self._say(frame)
        return f"{'via' if frame.library else 'from'} {named}{where}", frame.column

    def _say(self, place: Site | Frame) -> str:
        return place.where if self._where is None else self._where(place)


def path(site: Site) -> list[tuple[int, int]]:
    """The order of sites that only their callers tell apart."""
    return [(frame.line, frame.column) for frame in site.callers]


def _place(site: Site) -> _Place:
    return site.file, site.line, site.column


def _with_column(where: str, column: int) -> str:
    line, other, cell = where.partition(", another cell")
    return f"{line}:{column + 1}{other}{cell}"
