"""Give the rows of a report distinct names: by column, host function and callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter

from ...recording import Frame, Site

_LONGEST = 120  # characters of the callers that are shown

_Place = tuple[str, int, int]
_Named = tuple[str, str]  # function and flavor


class Rows:
    """The call sites that a report has rows for.

    Args:
        sites: the call sites.
        where: names the place of a site or of a calling frame.
    """

    def __init__(
        self, sites: Iterable[Site], where: Callable[[Site | Frame], str] = attrgetter("where")
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
            self._distinguish(group)

    def name(self, site: Site) -> str:
        """Return a name that is unique at its column: host function, flavor if needed, or ""."""
        names = self._columns[_place(site)]
        if len(names) == 1:
            return ""
        alone = sum(function == site.function for function, _ in names) == 1
        return site.function if alone else f"{site.flavor} {site.function}"

    def where(self, site: Site, *, column: bool = True) -> str:
        """Name the place of a site, with column (from 1) and callers where it is ambiguous."""
        alone = self._lines[site.file, site.line] == 1 or not column
        where = self._where(site)
        where = where if alone else _with_column(where, site.column)
        callers = self.callers(site)
        return f"{where} ({callers})" if callers else where

    def callers(self, site: Site) -> str:
        """Name the callers that distinguish sites of one line and function: ``from line 6``.

        Libraries come first, ``via solve, mylib.py:8``. Empty if the site is unique.
        """
        words = ", ".join(self._callers.get(site, ()))
        return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"

    def _distinguish(self, group: list[Site]) -> None:
        """Find the frames, from the innermost outwards, in which the sites of `group` differ."""
        pending = [(group, 0)]
        while pending:
            sites, depth = pending.pop()
            paths: dict[tuple[str, int] | None, list[Site]] = {}
            for site in sites if len(sites) > 1 else ():
                more = site.callers[depth : depth + 1]
                path = self._words(site, *more) if more else None
                paths.setdefault(path, []).append(site)
            lines = Counter(path[0] for path in paths if path)
            for path, own in paths.items():
                if path is not None:
                    words, column = path
                    caller = _with_column(words, column) if lines[words] > 1 else words
                    for site in own if len(paths) > 1 else ():
                        self._callers.setdefault(site, []).append(caller)
                    pending.append((own, depth + 1))

    def _words(self, site: Site, frame: Frame) -> tuple[str, int]:
        named = "" if frame.function.startswith("<") else f"{frame.function}, "
        is_near = frame.file == site.file and not frame.cell
        where = f"line {frame.line}" if is_near else self._where(frame)
        return f"{'via' if frame.library else 'from'} {named}{where}", frame.column


def path(site: Site) -> list[tuple[int, int]]:
    """Return the sort key of sites that differ only in their callers."""
    return [(frame.line, frame.column) for frame in site.callers]


def _place(site: Site) -> _Place:
    return site.file, site.line, site.column


def _with_column(where: str, column: int) -> str:
    line, other, cell = where.partition(", another cell")
    return f"{line}:{column + 1}{other}{cell}"
