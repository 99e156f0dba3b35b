"""Running the body of a cell magic as IPython would run the cell itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class CellSyntaxError(Exception):
    """A SyntaxError in the body of a cell magic, shown as IPython shows one in a plain cell."""

    def __init__(self, shell: InteractiveShell, error: SyntaxError) -> None:
        super().__init__(str(error))
        self._shown = shell.SyntaxTB.structured_traceback(type(error), error, None)

    def _render_traceback_(self) -> list[str]:
        return self._shown


# What a front end shows as the name of the error.
CellSyntaxError.__name__ = "SyntaxError"


class Cell:
    """The parsed body of a cell magic; line 1 is the line of the magic itself."""

    def __init__(self, shell: InteractiveShell, body: str) -> None:
        self._shell = shell
        # The blank line stands for the magic's own, so that line numbers are the cell's.
        source = "\n" + shell.transform_cell(body)
        # The number of the cell that is running; execution_count is the next one's already.
        history = shell.history_manager
        number = len(history.input_hist_raw) - 1 if history else 0
        self.name = shell.compile.cache(source, number, raw_code=body)
        try:
            tree: Any = shell.compile.ast_parse(source, filename=self.name)
        except (SyntaxError, ValueError, OverflowError) as error:
            if not isinstance(error, SyntaxError):
                raise
            raise CellSyntaxError(shell, error) from None
        self.tree: ast.Module = tree

    def functions(self) -> dict[str, ast.FunctionDef]:
        """The top-level functions by name; of several with one name the last."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def run(self) -> Any:
        """Runs the body in the user's namespace; returns the value of a last expression."""
        __tracebackhide__ = True  # IPython: not a frame the user cares for
        tree = self._shell.transform_ast(self.tree)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(self._code(tree, "exec"), self._shell.user_global_ns, self._shell.user_ns)
        if last is None:
            return None
        return eval(
            self._code(ast.Expression(last.value), "eval"),
            self._shell.user_global_ns,
            self._shell.user_ns,
        )

    def _code(self, tree: ast.AST, mode: str) -> Any:
        compiler: Callable[..., Any] = self._shell.compile
        return compiler(tree, self.name, mode)  # type: ignore[arg-type]


def decorate(node: ast.FunctionDef, decorator: str) -> None:
    """Puts the name `decorator` above all decorators of `node`."""
    name = ast.Name(decorator, ast.Load())
    ast.copy_location(name, node)
    ast.fix_missing_locations(name)
    node.decorator_list.insert(0, name)
