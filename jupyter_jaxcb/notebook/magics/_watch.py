"""``%%jax_watch``: the values of a cell, by line and step."""

from __future__ import annotations

import keyword
import re
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from ...diagnostics import Watch, watching
from ..display import WatchedView
from ._base import SessionMagics, as_cell_magic
from ._options import unquoted

_TIMING = re.compile(r"\s*(%%(?:time|timeit|prun)\b)")


@magics_class
class WatchMagics(SessionMagics):
    """The magic that shows the values of a cell."""

    @as_cell_magic
    @magic_arguments()
    @argument(
        "names",
        nargs="*",
        help="the variables to watch, as in loss, grads; step.* for all of the function step; "
        "model.py:40-60 for lines of a file; all by default",
    )
    @argument(
        "--first",
        metavar="CONDITION",
        help="only look for the first bad value: nan, inf, both, or a condition on x such as "
        '"abs(x) > 1e6"',
    )
    @argument("--stop", action="store_true", help="end the cell at the first bad value")
    @argument(
        "--every", metavar="N", type=int, default=1, help="send every N-th step of a compiled loop"
    )
    @argument(
        "--number",
        action="append",
        metavar="NAME=FUNCTION",
        default=[],
        help="one more number of each array, as in norm=jnp.linalg.norm",
    )
    @argument(
        "--sink",
        metavar="FUNCTION",
        help="called with the number and the values of each step: a logger",
    )
    @argument("--to", metavar="NAME", help="assign what was seen to this name")
    @argument(
        "--compare",
        metavar="NAME",
        help="say above the table what differs from what was seen before; NAME is that of --to",
    )
    @no_var_expand
    @cell_magic
    def jax_watch(self, line: str, cell: str) -> Any:
        """Show the values of a cell that nobody has to edit (``%%jax_watch [names] [options]``).

        The cell runs as it is. Under it stands, for each variable of your functions, its smallest,
        mean and largest value, how often it was NaN or infinite, and a plot over the steps of the
        loop, also inside of programs that JAX compiles; with derivatives, that of its cotangent
        too. Above it stands the first bad value: line, expression, step and batch element. Same as
        ``with jupyter_jaxcb.watching():``. Example:

            %%jax_watch loss --to before
            train(params, batch)
        """
        __tracebackhide__ = True
        options = self._parse("jax_watch", line)
        target = options.to
        if target is not None and (not target.isidentifier() or keyword.iskeyword(target)):
            raise UsageError(f"{target!r} is not a valid name. Write %%jax_watch --to NAME.")
        timing = _TIMING.match(cell)
        if timing:
            raise UsageError(
                f"Write {timing[1]} above %%jax_watch: it hides the lines of the cell."
            )
        before = self._earlier(options.compare) if options.compare else None
        try:
            block = watching(
                " ".join(options.names),
                first=unquoted(options.first) if options.first else None,
                stop=options.stop,
                every=options.every,
                to=self._value("--sink", options.sink) if options.sink else None,
                **dict(self._number(text) for text in options.number),
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        body = self._body(f"%%jax_watch {line}", cell)
        view = None
        try:
            with block as seen:
                if target:
                    self._namespace[target] = seen
                view = WatchedView(seen, self._session.show_values, self._session.origins)
                if self._session.is_attended:
                    view.begin()
                return body.run()
        finally:
            if view is not None:
                view.end()
                self._session.at_end.append(partial(view.finish, before))

    def _earlier(self, name: str) -> Watch:
        """Return what ``--compare`` names."""
        before = self._namespace.get(name)
        if not isinstance(before, Watch):
            raise UsageError(
                f"--compare {name}: {name!r} is not what a cell has seen. Run the cell to compare "
                f"with under %%jax_watch --to {name} first."
            )
        return before

    def _number(self, text: str) -> tuple[str, Any]:
        """Return the name and the function of ``--number``."""
        name, equals, expression = unquoted(text).partition("=")
        if not (equals and name.isidentifier()):
            raise UsageError(f"--number {text} is no NAME=FUNCTION, such as norm=jnp.linalg.norm.")
        return name, self._value(f"--number {text}", expression)

    def _value(self, option: str, expression: str) -> Any:
        """Return the value of an expression of the user."""
        try:
            return eval(unquoted(expression), self.shell.user_ns)  # type: ignore[union-attr]
        except Exception as error:
            raise UsageError(f"{option}: {type(error).__name__}: {error}") from None
