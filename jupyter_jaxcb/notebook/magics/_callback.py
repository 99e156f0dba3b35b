"""``%%jax_callback``, ``%jax_callbacks`` and ``%jax_explain``."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Mapping
from typing import Any

from IPython.core.magic import (
    cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments

from ...capabilities import queue
from ...diagnostics import all_running_calls, explain, explain_matrix, observe_jax
from ...recording import Matrix, Recording
from ...report import NO_CALLBACKS, cost_to_text
from ...stack import cell_known_as
from ..session import stacks
from ._base import SessionMagics, as_cell_magic
from ._call_argument import call_argument, split_options
from ._cell import decorate
from ._options import (
    check_declared,
    check_result,
    check_rules,
    chosen_functions,
    decorator_of,
    option_arguments,
    rules_of,
    seconds_of,
    stacks_after,
)
from ._registering import RulesOfTheCell
from ._table import CallbackTable

_DECORATOR = "_jaxcb_register"  # the decorator's name in the user's namespace, while a cell runs


_RULE = f"{_DECORATOR}_rule"


@magics_class
class JaxMagics(SessionMagics):
    """Register, list and explain callbacks."""

    @as_cell_magic
    @magic_arguments()
    @argument("flavor", nargs="?", default="", help="pure, io, debug, buffer or tap")
    @argument(
        "names", nargs="*", default=[], help="functions to register; by default all in the cell"
    )
    @argument(
        "--result",
        help="what the function returns: an expression over its parameters, such as z or "
        '"(z, z.shape[:1])"; None for nothing; infer to run a pure function once, on zeros. By '
        "default taken from the return annotation",
    )
    @argument("--jvp", help="pure, buffer: a function of the cell, its forward rule as for defjvp")
    @argument(
        "--vjp",
        nargs=2,
        metavar=("FORWARD", "BACKWARD"),
        help="pure, buffer: two functions of the cell, its reverse rule as for defvjp",
    )
    @argument(
        "--transpose",
        help="pure, buffer: a function of the cell, the transpose of a function with --linear, as "
        "for deftranspose",
    )
    @argument(
        "--residual",
        help="pure, buffer: a function of the cell, the residual of a solver with --linear, as for "
        "defresidual",
    )
    @option_arguments
    @output_can_be_silenced
    @no_var_expand
    @cell_magic
    def jax_callback(self, line: str, cell: str) -> Any:
        """Run the cell and register its functions as JAX callbacks.

        This is the same as the decorator ``@jupyter_jaxcb.pure(...)`` (or that of another flavor)
        above each top-level function. If the same cell runs again with a new body, compiled
        programs call the new functions; another cell does not affect them. Example:

            %%jax_callback pure --result x
            def double(x):
                return 2 * x
        """
        __tracebackhide__ = True
        options = self._parse("jax_callback", line)
        register, result = decorator_of(options, self._namespace)
        parsed = self._body(f"%%jax_callback {line}", cell)
        functions = chosen_functions(options.names, parsed.functions(), line)
        rules = rules_of(options)
        functions = check_rules(rules, options.flavor, functions, parsed.functions())
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
        if rules:
            joined = RulesOfTheCell(register, [(method, len(names)) for method, names in rules])
            decorators = {_DECORATOR: joined.function}
            for method, names in rules:
                for place, name in enumerate(names):
                    decorator = f"{_RULE}_{method}_{place}"
                    decorators[decorator] = functools.partial(joined.rule, method, place)
                    decorate(parsed.functions()[name], decorator)
        self._namespace.update(decorators)
        try:
            with cell_known_as(("%%jax_callback", line, cell)):
                return parsed.run()
        finally:
            for name in decorators:
                self._namespace.pop(name, None)

    @magic_arguments()
    @argument("--stacks", action="store_true", help="show running host calls and their stacks")
    @argument(
        "--wait",
        metavar="SECONDS",
        help="set how long a cell waits at its end for its host calls (5 by default, 0: no wait)",
    )
    @argument(
        "--stacks-after",
        metavar="SECONDS",
        help="set after how long without a host call that returns a running cell says why (30 by "
        "default), or off",
    )
    @line_magic
    def jax_callbacks(self, line: str) -> CallbackTable | None:
        """Show all registered callbacks with their call sites, statuses, calls and time so far.

        With ``--stacks``, show the running host calls with the Python stacks of their threads, and
        how many calls are queued. Example: ``%jax_callbacks --stacks``.
        """
        options = self._parse("jax_callbacks", line)
        if options.wait is not None:
            self._session.wait_seconds = seconds_of(options.wait)
        if options.stacks_after is not None:
            self._session.hangs.seconds = stacks_after(options.stacks_after)
        if options.stacks:
            print(stacks(all_running_calls(), time.perf_counter_ns(), queue.waiting_calls()))
        if options.stacks or options.wait is not None or options.stacks_after is not None:
            return None
        sites = list(self._session.sites.totals.values())
        return CallbackTable(self._session.callbacks(), sites, self._session.origins)

    @magic_arguments()
    @argument(
        "--matrix",
        action="store_true",
        help="explain it under jit, vmap, grad, hessian, scan and remat",
    )
    @argument("--cost", action="store_true", help="also show the times of lowering and compiling")
    @argument("--jax", action="store_true", help="also explain JAX's own callbacks")
    @argument("call", nargs="*", help="the call to explain: f(x, y), jax.grad(f)(x)")
    @output_can_be_silenced
    @needs_local_scope
    @no_var_expand
    @line_magic
    def jax_explain(
        self, line: str, local_ns: Mapping[str, Any] | None = None
    ) -> Recording | Matrix:
        """Show what ``jax.jit`` would make of each callback in ``f(x, y)``, without running it.

        Shows status, host calls per run, shapes, reasons and advice, as after a cell that ran. The
        function and its arguments are evaluated and the call is compiled, but not run. Example:
        ``%jax_explain --matrix jax.vmap(model)(x)``.
        """
        __tracebackhide__ = True
        options, call = split_options(line)
        names = {**self._namespace, **(local_ns or {})}
        function, args, kwargs = call_argument(call, names)
        with observe_jax() if "--jax" in options else contextlib.nullcontext():
            if "--matrix" in options:
                explained = explain_matrix(function)(*args, **kwargs)
                recordings = list(explained.columns.values())
            else:
                explained = explain(function)(*args, **kwargs)
                recordings = [explained]
        if "--cost" in options:
            costs = filter(None, map(cost_to_text, recordings))
            print("\n".join(costs) or NO_CALLBACKS)
        return explained
