"""Measure how long the code of a cell runs, without what IPython and the extension do around it."""

from __future__ import annotations

import ast
import time
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics import execution
from IPython.utils import timing

from ...stack import spent_in_blocks
from ._replaced import Replaced
from ._timed_code import TIMED, move_to_cell

_TIMING: Any = execution if hasattr(execution, "clock2") else timing  # where %%time finds it


class CodeClock:
    """Counts the time of a cell's code alone.

    It runs from the moment at which IPython, or a magic, has compiled code until that code has
    ended, failed, is displayed, or more code is compiled. So it leaves out compilation, magics like
    ``%%time``, displays, tracebacks and waiting for host calls, and it does not count what blocks
    like ``with record()`` do when they begin and end.

    Attributes:
        ended_ns: when it was stopped last.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell: Any = shell
        self._replaced = Replaced()
        self._in_cell = False
        self._total_ns = self.ended_ns = 0
        self._since_ns = 0  # 0: it is stopped
        self._is_magic = False  # what runs is a magic, which may compile the code
        self._only_magic = False  # the statement that runs is a magic
        self._times = False  # %%time runs code

    def install(self) -> None:
        """Let IPython start the clock when code is compiled, and stop it when it has ended."""
        run_code, trap = self._shell.run_code, self._shell.display_trap
        clock2, show = _TIMING.clock2, trap.hook
        kind: type[Any] = type(self._shell.compile)

        def compile_code(this: Any, code: Any, name: str, *mode: Any, **options: Any) -> Any:
            if name in TIMED and isinstance(code, ast.AST):
                name = move_to_cell(code, name)
            if self._is_magic:  # a magic that compiles code does not count
                self._since_ns = 0
            self.stop()
            try:
                return kind.__call__(this, code, name, *mode, **options)
            finally:
                self.start(code)

        async def run_code_and_stop(*args: Any, **options: Any) -> Any:
            try:
                return await run_code(*args, **options)
            finally:
                self.stop()
                self._only_magic = False

        def time_code() -> Any:  # which %%time calls before and after the code, then it prints
            now = clock2()
            if self._times:
                self.code_ended()
            self._times = not self._times
            return now

        def stop_and_show(*value: Any) -> Any:
            self.stop()
            return show(*value)

        timed = type(kind.__name__, (kind,), {"__call__": compile_code})
        self._replaced.replace(self._shell.compile, "__class__", timed)
        self._replaced.replace(self._shell, "run_code", run_code_and_stop)
        self._replaced.replace(_TIMING, "clock2", time_code)
        self._replaced.replace(trap, "hook", stop_and_show)

    def remove(self) -> None:
        """Leave IPython as it was."""
        self._replaced.restore()

    def begin(self, *, in_code: bool = False) -> None:
        """Begin a cell, whose code runs already if `in_code` is true."""
        self._in_cell, self._only_magic, self._times = True, False, False
        self._total_ns = self._since_ns = 0
        if in_code:
            self.start()

    def end(self) -> None:
        """End the cell."""
        self.stop()
        self._in_cell = False

    @property
    def ns(self) -> int:
        """How long the code of the cell has run so far."""
        running = self._since_ns and not self._is_magic
        return self._total_ns + (_now() - self._since_ns if running else 0)

    def start(self, tree: Any = None) -> None:
        """Start the clock, for the code of a syntax tree."""
        self._is_magic = _is_magic(tree)
        self._only_magic |= self._is_magic
        self._since_ns = _now() if self._in_cell else 0

    def stop(self) -> None:
        """Stop the clock."""
        if self._since_ns:
            self.ended_ns = time.perf_counter_ns()
            self._total_ns += _now() - self._since_ns
            self._since_ns = 0

    def code_ended(self) -> None:
        """Stop the clock after the code in a magic, unless there is other code around the magic."""
        self.stop()
        if not self._only_magic:
            self.start()


def _now() -> int:
    return time.perf_counter_ns() - spent_in_blocks()


def _is_magic(tree: Any) -> bool:
    """Whether code is only a magic: ``%%time``, ``%time f()``, ``y = %timeit -o f()``."""
    body = getattr(tree, "body", None)
    node = body[0] if isinstance(body, list) and len(body) == 1 else body
    match getattr(node, "value", node):
        case ast.Call(func=ast.Attribute(attr="run_cell_magic" | "run_line_magic")):
            return True
    return False
