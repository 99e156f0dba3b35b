"""The magics: argument parsing around calls that work without IPython."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments

from ...diagnostics import all_running_calls, explain, explain_matrix
from ...migrate import MigrationError, read, report
from ...recording import Matrix, Recording
from ...report import cost_to_text
from ...stack import cell_known_as
from ..session import stacks
from ._base import SessionMagics
from ._call_argument import question, split_options
from ._cell import decorate
from ._options import (
    check_declared,
    check_result,
    check_rule,
    chosen_functions,
    decorator_of,
    rule_of,
    seconds_of,
    unquoted,
)
from ._registering import RuleOfTheCell
from ._table import CallbackTable

_DECORATOR = "_jaxcb_register"  # the decorator's name in the user's namespace, while a cell runs


_RULE = f"{_DECORATOR}_rule"


@magics_class
class JaxMagics(SessionMagics):
    """The magics of one session."""

    @magic_arguments()
    @argument("flavor", nargs="?", default="", help="pure, io, debug, buffer or tap")
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
    @argument(
        "--executor",
        help="pure, io: who makes the calls of a vmap, side by side: threads, processes, dask, "
        "ipyparallel or mpi, with a number of workers as in threads:8, an address as in "
        "dask:tcp://host:8786; or a variable that is an executor, client or view",
    )
    @argument("--chunksize", help="batch elements that are sent to the executor together")
    @argument("--timeout", help="seconds that one call may take in the executor")
    @argument("--retries", help="how often a call that failed in the executor is made again")
    @output_can_be_silenced
    @no_var_expand
    @cell_magic
    def jax_callback(self, line: str, cell: str) -> Any:
        """Registers the functions of the cell as JAX callbacks, and runs the cell.

        It is the decorator ``@jupyter_jaxcb.pure(...)`` (or of another flavor) above each
        top-level function. Running the same cell again with another body changes what compiled
        programs call; another cell does not.
        """
        __tracebackhide__ = True
        options = self._parse("jax_callback", line)
        register, result = decorator_of(options, self._namespace)
        parsed = self._body(f"%%jax_callback {line}", cell)
        functions = chosen_functions(options.names, parsed.functions())
        rule = rule_of(options)
        if rule:
            functions = check_rule(*rule, options.flavor, functions, parsed.functions())
        for function in functions:
            if result is not None:
                check_result(
                    result,
                    options.flavor,
                    function,
                    {*self._namespace, *parsed.names()},
                    alone=len(parsed.functions()) == 1,
                )
            else:
                check_declared(options.flavor, function)
            decorate(function, _DECORATOR)
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
            with cell_known_as(("%%jax_callback", line, cell)):
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
        """Shows every registered callback with its sites, their statuses, calls and time so far.

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

        Status, host calls of a run, shapes, reasons and advice, as after a cell that ran. The
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
            print("\n".join(costs) or "no jupyter_jaxcb callbacks")
        return answer

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
