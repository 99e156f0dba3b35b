"""``%%jax_record`` and ``%jax_record auto``: show the host trace of one cell, or of all."""

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
    "none of JAX's own callbacks were called; in a program compiled before this cell, elided ones "
    "are unknown: call jax.clear_caches() and run the cell again"
)
_NOTHING = (
    "no jupyter_jaxcb callbacks were called; write %%jax_record --jax to record jax.pure_callback "
    "and JAX's other callbacks"
)
_OFF = "nothing was recorded and no file was written, because JUPYTER_JAXCB=off"


@magics_class
class RecordMagics(SessionMagics):
    """The magic that records cells."""

    @magic_arguments()
    @argument("name", nargs="?", help="as a cell magic: assign the recording to this name")
    @argument(
        "--values",
        action="store_true",
        help="show arguments and results of the first calls; they are saved with the notebook",
    )
    @argument("--jax", action="store_true", help="also record JAX's own callbacks")
    @argument("--save", metavar="FILE", help="write the recording to a file, see Recording.save")
    @output_can_be_silenced
    @line_cell_magic
    def jax_record(self, line: str, cell: str | None = None) -> Any:
        """Show the host trace of a cell (``%%jax_record [name]``) or of all (``%jax_record auto``).

        As a cell magic it records the cell, shows its host trace, even after ``%jax_record off``,
        and assigns the recording to `name`. As a line magic, ``auto`` shows the host trace of every
        later cell with callbacks, and ``off`` of none. With ``--jax``, callbacks made with
        `jax.pure_callback`, `io_callback`, `jax.debug.print` and the like are recorded too, in your
        code or in a library.
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
                    "--save is for one cell: begin it with %%jax_record --save FILE, or call "
                    "recording.save(FILE)."
                )
            if name == "auto" and is_off():
                raise UsageError(
                    "cannot record: JUPYTER_JAXCB=off turns recording off. Start the kernel "
                    "without it."
                )
            self._session.set_automatic(name == "auto", values=options.values, jax=options.jax)
            return None
        if name in ("auto", "off"):
            raise UsageError(
                f"%%jax_record does not take {name}. To turn automatic recording "
                f"{'on' if name == 'auto' else 'off'}, write %jax_record {name} on a separate line."
            )
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"{name!r} is not a valid name. Write %%jax_record NAME.")
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
