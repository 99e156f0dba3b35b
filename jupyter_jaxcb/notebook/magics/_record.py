"""``%%jax_record``, ``%jax_record auto`` and ``%%jax_profile``: the host trace of a cell."""

from __future__ import annotations

import dataclasses
import functools
import keyword
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    cell_magic,
    line_cell_magic,
    magics_class,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments

from ...diagnostics import is_off, observe_jax, profile, record
from ...recording import Recording, check_folder, check_path
from ._base import SessionMagics, as_cell_magic
from ._options import unquoted

_NOTHING_OF_JAX = (
    "none of JAX's own callbacks were called; in a program compiled before %load_ext, elided ones "
    "are unknown: call jax.clear_caches() and run the cell again"
)
_NOTHING = (
    "no jupyter_jaxcb callbacks were called; write %%jax_record --jax to record jax.pure_callback "
    "and JAX's other callbacks"
)
_OFF = "nothing was recorded and no file was written, because JUPYTER_JAXCB=off"
_VALUES = argument(
    "--values",
    action="store_true",
    help="show arguments and results of the first calls; they are saved with the notebook",
)
_SAVE = argument("--save", metavar="FILE", help="write the recording to a file, see Recording.save")


@magics_class
class RecordMagics(SessionMagics):
    """The magics that record cells."""

    @magic_arguments()
    @argument("name", nargs="?", help="as a cell magic: assign the recording to this name")
    @_VALUES
    @argument("--jax", action="store_true", help="also record JAX's own callbacks")
    @_SAVE
    @output_can_be_silenced
    @line_cell_magic
    def jax_record(self, line: str, cell: str | None = None) -> Any:
        """Show the host trace of a cell (``%%jax_record [name]``) or of all (``%jax_record auto``).

        As a cell magic it records the cell, shows its host trace, even after ``%jax_record off``,
        and assigns the recording to `name`. As a line magic, ``auto`` shows the host trace of every
        later cell with callbacks, and ``off`` of none. With ``--jax``, callbacks made with
        `jax.pure_callback`, `io_callback`, `jax.debug.print` and the like are recorded too, in your
        code or in a library. Example:

            %%jax_record run --jax --save run.jaxcb
            model(x)
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
        block = observe_jax if options.jax else record
        return self._run("jax_record", line, cell, block, say=functools.partial(_say, options.jax))

    @as_cell_magic
    @magic_arguments()
    @argument("name", nargs="?", help="assign the recording to this name")
    @_VALUES
    @_SAVE
    @output_can_be_silenced
    @cell_magic
    def jax_profile(self, line: str, cell: str) -> Any:
        """Show where the time of a cell went, and its host trace (``%%jax_profile [name]``).

        The cell runs under `jupyter_jaxcb.profile`: JAX's profiler is on, and JAX's own callbacks
        are recorded too. Its recording is assigned to `name`; ``print(name)`` shows it as text. Run
        the cell twice, so that the second time nothing is compiled, and end it with
        `jax.block_until_ready`. Example:

            %%jax_profile run
            jax.block_until_ready(model(x))
        """
        __tracebackhide__ = True
        return self._run("jax_profile", line, cell, profile)

    def _run(
        self,
        magic: str,
        line: str,
        cell: str,
        block: Callable[[], Any],
        say: Callable[[Recording], None] = lambda _: None,
    ) -> Any:
        """Run `cell` in a `block`; keep, name, show and save its recording."""
        __tracebackhide__ = True
        options = self._parse(magic, line)
        name, save = options.name, unquoted(options.save) if options.save else None
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"{name!r} is not a valid name. Write %%{magic} NAME.")
        try:
            if save:
                check_path(save)
                check_folder(save)
        except (OSError, ValueError) as error:
            raise UsageError(str(error)) from None
        body = self._body(f"%%{magic} {line}", cell)
        recorded, clock = None, self._session.code
        before_ns = clock.ns
        try:
            with block() as recorded:
                return body.run()
        finally:
            if recorded is not None:
                bodies = tuple(self._session.bodies)
                recording = dataclasses.replace(recorded.recording, cells=bodies)
                if recording.profile is None and recording.wall_ns:
                    recording = dataclasses.replace(recording, wall_ns=clock.ns - before_ns)
                if name:
                    self._namespace[name] = recording
                self._session.keep(recording, values=options.values)
                if is_off():
                    print(_OFF)
                else:
                    say(recording)
                    if save:
                        recording.save(save)


def _say(jax: bool, recording: Recording) -> None:
    """Print why a host trace has no call site, if it has none."""
    facts = (*recording.lowered, *recording.outcomes)
    sites = {*recording.bound, *(fact.site for fact in facts)}
    if jax and not any(site.flavor.startswith("jax ") for site in sites):
        print(_NOTHING_OF_JAX)
    elif not sites:
        print(_NOTHING)
