"""Base class of the magics: parse the line and the body of the cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics
from IPython.core.magic_arguments import parse_argstring

from ..session import Session
from ._cell import Cell
from ._options import option_hint, option_names


def as_cell_magic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Show a cell magic with two percent signs in its help, where IPython writes one."""
    name = function.__name__
    function.__doc__ = re.sub(rf"(?<!%)%{name}\b", f"%%{name}", function.__doc__ or "")
    return function


class SessionMagics(Magics):
    """Magics of one session."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.shell)
        self._session = session
        self._namespace = session.shell.user_ns

    def _body(self, magic: str, cell: str) -> Cell:
        body = Cell(self._session.shell, magic, cell, self._session.code.code_ended)
        self._session.bodies.append(body.name)
        self._session.origins.add(body.name)
        return body

    def _parse(self, magic: str, line: str) -> Any:
        function = getattr(self, magic)
        # --resul is a mistake, and may be the beginning of another option one day.
        function.parser.allow_abbrev = False
        try:
            return parse_argstring(function, line)
        except (UsageError, ValueError) as error:  # ValueError: a quote that is not closed
            hint = option_hint(line, option_names(function))
            percent = "%" if magic in self._session.shell.magics_manager.magics["line"] else "%%"
            raise UsageError(f"{error}{hint} See {percent}{magic}? for its options.") from None
