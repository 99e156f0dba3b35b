"""Run the body of a cell magic as IPython would run the cell itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ..display import blank_lines
from ..session import cell_frame, lines_as_typed


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
    """The parsed body of a cell magic; its lines are those of the cell, magics included."""

    def __init__(
        self, shell: InteractiveShell, magic: str, body: str, ended: Callable[[], None]
    ) -> None:
        __tracebackhide__ = True
        self._shell = shell
        self._ended = ended
        history = shell.history_manager
        # The number of the running cell; execution_count is already that of the next cell.
        number = len(history.input_hist_raw) - 1 if history else 0
        try:
            source = shell.transform_cell(body)
            # Blank lines replace the magic's line and the blank lines that IPython drops, so that
            # line numbers are those of the cell.
            below = "\n" * blank_lines(body) + source
            frame = cell_frame()
            above = lines_as_typed(frame)[: frame.f_lineno - 1] if frame else []  # other magics
            typed = f"{''.join(above)}{magic}\n{below}"
            self.name = shell.compile.cache(typed, number, raw_code=body)
            blank = "\n" * (len(above) + 1)
            tree: Any = shell.compile.ast_parse(f"{blank}{below}", filename=self.name)
        except SyntaxError as error:
            raise CellSyntaxError(shell, error) from None
        self.tree: ast.Module = tree

    def functions(self) -> dict[str, ast.FunctionDef]:
        """Return the top-level functions by name; of several with the same name, the last."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def names(self) -> set[str]:
        """Return the names that the cell defines, as far as its source shows."""
        defined = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                defined.add(node.name)
            elif isinstance(node, ast.alias):
                defined.add((node.asname or node.name).partition(".")[0])
        return defined

    def run(self) -> Any:
        """Run the body in the user's namespace; return the value of a final expression."""
        __tracebackhide__ = True
        try:
            return self._run()
        finally:
            self._ended()

    def _run(self) -> Any:
        __tracebackhide__ = True
        tree = self._shell.transform_ast(self.tree)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        code = self._code(tree, "exec")
        exec(code, self._shell.user_global_ns, self._shell.user_ns)
        if last is None:
            return None
        return eval(
            self._code(ast.Expression(last.value), "eval"),
            self._shell.user_global_ns,
            self._shell.user_ns,
        )

    def _code(self, tree: Any, mode: str) -> Any:
        __tracebackhide__ = True
        compiler: Callable[..., Any] = self._shell.compile
        try:
            return compiler(tree, self.name, mode)
        except SyntaxError as error:  # a return outside a function, an await
            raise CellSyntaxError(self._shell, error) from None


def decorate(node: ast.FunctionDef, decorator: str) -> None:
    """Add the name `decorator` above all other decorators of `node`."""
    name = ast.Name(decorator, ast.Load())
    ast.copy_location(name, node)
    ast.fix_missing_locations(name)
    node.decorator_list.insert(0, name)
