"""The magics: argument parsing around calls that work without IPython."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import time
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..migrate import MigrationError, read, report
from ..recording import Matrix, Recording
from ..report import cost_to_text
from ..stack import all_running_calls, explain, explain_matrix, record
from ._cell import Cell, decorate
from ._options import (
    FLAVORS,
    check_declared,
    check_result,
    check_rule,
    chosen_functions,
    keyword_arguments,
    option_hint,
    rule_of,
    seconds_of,
    unquoted,
)
from ._question import question, split_options
from ._rule import RuleOfTheCell
from ._session import Session
from ._stacks import stacks
from ._table import CallbackTable

_DECORATOR = "_jaxcb_register"  # the decorator's name in the user's namespace, while a cell runs


_RULE = f"{_DECORATOR}_rule"


@magics_class
class JaxMagics(Magics):
    """The magics of one session."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.shell)
        self._session = session
        self._namespace = session.shell.user_ns

    @magic_arguments()
    @argument("flavor", help="pure, io, debug, buffer or tap")
    @argument(
        "names", nargs="*", default=[], help="functions to register; all of the cell if left out"
    )
    @argument(
        "--result",
        help="what the function returns: an expression over its parameters, such as z or "
        '"(z, z.shape[:1])"; None for nothing; infer to run a pure function once, on zeros. If it '
        "is left out, a return annotation says it",
    )
    @argument(
        "--vmap-method",
        help="pure, buffer: how vmap calls it: sequential (the default, always right), "
        "sequential_unrolled, expand_dims, broadcast_all or legacy_vectorized",
    )
    @argument("--ordered", action="store_true", help="io, debug: keep program order")
    @argument("--arrays", help="what the functions get: numpy (the default), or jax for JAX arrays")
    @argument("--derivative", help="pure: finite, for central differences")
    @argument(
        "--jvp", help="pure, buffer: the function of the cell that is its rule, as for defjvp"
    )
    @argument(
        "--vjp",
        nargs=2,
        metavar=("FORWARD", "BACKWARD"),
        help="pure, buffer: the two functions of the cell that are its rule, as for defvjp",
    )
    @argument(
        "--has-side-effect",
        action="store_true",
        help="buffer: call it as often as the program says",
    )
    @argument("--check", action="store_true", help="buffer: raise if it leaves output unwritten")
    @argument("--cast", action="store_true", help="pure, io: what it answers may lose in width")
    @output_can_be_silenced
    @no_var_expand
    @cell_magic
    def jax_callback(self, line: str, cell: str) -> Any:
        """Registers the functions of the cell as JAX callbacks, and runs the cell.

        It is the decorator ``@jupyter_jaxcb.pure(...)`` (or of another flavor) above each
        top-level function. Running the cell again with another body changes what compiled
        programs call.
        """
        __tracebackhide__ = True  # IPython: not a frame the user cares for
        options = self._parse("jax_callback", line)
        arguments = keyword_arguments(options)
        parsed = self._body(f"%%jax_callback {line}", cell)
        functions = chosen_functions(options.names, parsed.functions())
        rule = rule_of(options)
        if rule:
            functions = check_rule(*rule, options.flavor, functions, parsed.functions())
        for function in functions:
            if "result" in arguments:
                check_result(
                    arguments["result"],
                    options.flavor,
                    function,
                    {*self._namespace, *parsed.names()},
                )
            else:
                check_declared(options.flavor, function)
            decorate(function, _DECORATOR)
        register: Any = functools.partial(FLAVORS[options.flavor], **arguments)
        decorators: dict[str, Any] = {_DECORATOR: register}
        if rule:
            method, names = rule
            joined = RuleOfTheCell(register, method, len(names))
            decorators = {_DECORATOR: joined.function}
            for place, name in enumerate(names):
                decorators[f"{_RULE}_{place}"] = functools.partial(joined.rule, place)
                decorate(parsed.functions()[name], f"{_RULE}_{place}")
        self._namespace.update(decorators)
        try:
            return parsed.run()
        finally:
            for name in decorators:
                self._namespace.pop(name, None)

    @magic_arguments()
    @argument("--stacks", action="store_true", help="what is running now, and at which line it is")
    @argument(
        "--wait",
        metavar="SECONDS",
        help="how long a cell waits at its end for the host calls it has dispatched: 5; 0 for not "
        "at all",
    )
    @line_magic
    def jax_callbacks(self, line: str) -> CallbackTable | None:
        """Shows every registered callback with its sites, their fates, calls and time so far.

        With ``--stacks`` every host call that is running, and the Python stack of its thread.
        """
        options = self._parse("jax_callbacks", line)
        if options.wait is not None:
            self._session.barrier.seconds = seconds_of(options.wait)
        if options.stacks:
            print(stacks(all_running_calls(), time.perf_counter_ns()))
        if options.stacks or options.wait is not None:
            return None
        return CallbackTable(self._session.callbacks(), list(self._session.sites.totals.values()))

    @magic_arguments()
    @argument("--matrix", action="store_true", help="under jit, vmap, grad, hessian, scan, remat")
    @argument("--cost", action="store_true", help="how long lowering and compiling it took")
    @argument("call", nargs="*", help="what would be called: f(x, y), jax.grad(f)(x)")
    @output_can_be_silenced
    @needs_local_scope
    @no_var_expand
    @line_magic
    def jax_explain(
        self, line: str, local_ns: Mapping[str, Any] | None = None
    ) -> Recording | Matrix:
        """Says what ``jax.jit`` would make of each callback in ``f(x, y)``, without calling it.

        Fate, host calls of a run, shapes, reasons and remedies, as after a cell that ran. The
        function and its arguments are evaluated, the call is compiled, nothing of it runs.
        """
        __tracebackhide__ = True
        options, call = split_options(line)
        names = {**self._namespace, **(local_ns or {})}
        function, args, kwargs = question(call, names)
        if "--matrix" in options:
            answer = explain_matrix(function)(*args, **kwargs)
            recordings = list(answer.columns.values())
        else:
            answer = explain(function)(*args, **kwargs)
            recordings = [answer]
        if "--cost" in options:
            costs = filter(None, map(cost_to_text, recordings))
            print("\n".join(costs) or "no callback of ours in it")
        return answer

    @magic_arguments()
    @argument("name", nargs="?", help="as a cell magic: keep the recording under this name")
    @argument(
        "--values",
        action="store_true",
        help="show what the first calls were given and answered; it is saved with the notebook",
    )
    @output_can_be_silenced
    @line_cell_magic
    def jax_record(self, line: str, cell: str | None = None) -> Any:
        """``%%jax_record [name]`` shows the host trace of its cell; ``%jax_record auto|off``.

        As a cell magic it runs the cell recorded, shows its host trace also after
        ``%jax_record off``, and keeps the recording under `name`. As a line magic ``auto``
        shows the host trace of every cell with callbacks from here on, ``off`` of none.
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
            self._session.set_automatic(name == "auto", values=options.values)
            return None
        if name in ("auto", "off"):
            raise UsageError(
                f"to turn recording {name}, write %jax_record {name} on a line of its own."
            )
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"{name!r} is not a name. Write %%jax_record followed by one.")
        return self._record(name, self._body(f"%%jax_record {line}", cell), options.values)

    @magic_arguments()
    @argument("--write", action="store_true", help="rewrite the imports, and nothing else")
    @argument("file", help="a Python file or a notebook")
    @line_magic
    def jax_migrate(self, line: str) -> None:
        """Lists each use of jax.experimental.host_callback in a file, and what to write instead.

        It is ``python -m jupyter_jaxcb.migrate [--write] file``; nothing of the file runs.
        """
        options = self._parse("jax_migrate", line)
        try:
            source = read(unquoted(options.file))
            print("\n".join([report(source), *source.problems]))
            if options.write:
                print("rewritten" if source.write() else "nothing to rewrite")
        except MigrationError as error:
            raise UsageError(str(error)) from None

    def _record(self, name: str | None, cell: Cell, values: bool) -> Any:
        __tracebackhide__ = True
        recorded = None
        try:
            with record() as recorded:
                return cell.run()
        finally:
            if recorded is not None:
                recording = dataclasses.replace(
                    recorded.recording, cells=tuple(self._session.bodies)
                )
                if name:
                    self._namespace[name] = recording
                self._session.keep(recording, values=values)

    def _body(self, magic: str, cell: str) -> Cell:
        body = Cell(self._session.shell, magic, cell)
        self._session.bodies.append(body.name)
        self._session.origins.add(body.name)
        return body

    def _parse(self, magic: str, line: str) -> Any:
        function = getattr(self, magic)
        try:
            return parse_argstring(function, line)
        except (UsageError, ValueError) as error:  # ValueError: a quote that is not closed
            raise UsageError(
                f"{error}{option_hint(line)} See %{magic}? for what it takes."
            ) from None
