"""``%%jax_record``, ``%jax_record auto``: host traces of one cell, or of all."""

from __future__ import annotations

import dataclasses
import keyword
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from ...diagnostics import is_off, observe_jax, record
from ...recording import check_path
from ._base import SessionMagics
from ._cell import Cell
from ._options import unquoted

_NOTHING_OF_JAX = (
    "no callback of JAX's own was seen; of programs that were compiled before, only calls are: run "
    "them first in this cell, or call jax.clear_caches()"
)
_NOTHING = "no host call of jupyter_jaxcb's; for jax.pure_callback and its kin: %%jax_record --jax"
_OFF = "nothing is recorded, and no file is written: JUPYTER_JAXCB=off"


@magics_class
class RecordMagics(SessionMagics):
    """The magic that records."""

    @magic_arguments()
    @argument("name", nargs="?", help="as a cell magic: keep the recording under this name")
    @argument(
        "--values",
        action="store_true",
        help="show what the first calls were given and answered; it is saved with the notebook",
    )
    @argument("--jax", action="store_true", help="record callbacks made with jax's own functions")
    @argument("--save", metavar="FILE", help="write the recording to a file, see Recording.save")
    @output_can_be_silenced
    @line_cell_magic
    def jax_record(self, line: str, cell: str | None = None) -> Any:
        """``%%jax_record [name]`` shows the host trace of its cell; ``%jax_record auto|off``.

        As a cell magic it runs the cell recorded, shows its host trace also after
        ``%jax_record off``, and keeps the recording under `name`. As a line magic ``auto``
        shows the host trace of every cell with callbacks from here on, ``off`` of none. With
        ``--jax`` these are also `jax.pure_callback`, `io_callback`, `jax.debug.print` and the like,
        of your code or a library's.
        """
        __tracebackhide__ = True
        options = self._parse("jax_record", line)
        name = options.name
        if cell is None:
            if name not in ("auto", "off"):
                given = "" if name is None else f", not {name!r}"
                raise UsageError(
                    f"%jax_record takes auto or off{given}. To record one cell, begin it with "
                    "%%jax_record."
                )
            if options.save:
                raise UsageError(
                    "--save is for one cell: begin it with %%jax_record --save FILE; or write "
                    "recording.save(FILE)."
                )
            if name == "auto" and is_off():
                raise UsageError(
                    "JUPYTER_JAXCB=off turns recording off. Start the kernel without it."
                )
            self._session.set_automatic(name == "auto", values=options.values, jax=options.jax)
            return None
        if name in ("auto", "off"):
            raise UsageError(
                f"to turn recording {name}, write %jax_record {name} on a line of its own."
            )
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"{name!r} is not a name. Write %%jax_record followed by one.")
        save = unquoted(options.save) if options.save else None
        try:
            if save:
                check_path(save)
        except ValueError as error:
            raise UsageError(str(error)) from None
        body = self._body(f"%%jax_record {line}", cell)
        return self._record(name, body, options.values, options.jax, save)

    def _record(
        self, name: str | None, cell: Cell, values: bool, jax: bool, save: str | None
    ) -> Any:
        __tracebackhide__ = True
        recorded = None
        try:
            with (observe_jax if jax else record)() as recorded:
                return cell.run()
        finally:
            if recorded is not None:
                recording = dataclasses.replace(
                    recorded.recording, cells=tuple(self._session.bodies)
                )
                if name:
                    self._namespace[name] = recording
                self._session.keep(recording, values=values)
                sites = {*recording.bound, *(fact.site for fact in recording.lowered)}
                if is_off():
                    print(_OFF)
                elif jax and not any(site.flavor.startswith("jax ") for site in sites):
                    print(_NOTHING_OF_JAX)
                elif not sites:
                    print(_NOTHING)
                if save and not is_off():
                    recording.save(save)
