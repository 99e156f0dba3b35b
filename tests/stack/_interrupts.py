"""Raise KeyboardInterrupt at the points of this package's code where CPython checks for signals."""

import contextlib
import dis
import functools
import gc
import os
import sys

import jupyter_jaxcb as jaxcb

OUR_FILES = (os.path.dirname(jaxcb.__file__), contextlib.__file__)
# CPython checks for pending exceptions after these instructions, and when a function begins.
CHECKS = ("CALL", "JUMP_BACKWARD", "RESUME")


@functools.cache
def handlers(code):
    return [(e.start, e.end, e.target) for e in dis._parse_exception_table(code)]


def handler(code, at):
    return [target for start, end, target in handlers(code) if start <= at < end]


def checks_after(code, at):
    """Return whether CPython checks after the instruction; not after a RESUME of 2 or more."""
    name = dis.opname[code.co_code[at]]
    return name.startswith(CHECKS) and not (name == "RESUME" and code.co_code[at + 1] >= 2)


@functools.cache
def resume(code):
    """Return where a function begins: the offset of its first RESUME."""
    return next(i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")


class Interrupts:
    """Raise KeyboardInterrupt at the n-th check of CPython while armed.

    Attributes:
        left: the number of checks left; 0 or less once it was raised.
        place: the function and line where it was raised.
    """

    def __init__(self, n):
        self.left, self.armed, self.before = n, True, {}
        self.place = ""

    def __enter__(self):
        gc.disable()  # Python drops exceptions raised during a collection, also those of generators
        sys.settrace(self.trace)

    def __exit__(self, *error):
        sys.settrace(None)
        gc.enable()

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(OUR_FILES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self.before[frame] = resume(frame.f_code)
            if checks_after(frame.f_code, self.before[frame]):
                self.check(frame)
        elif event == "opcode":
            code, at, before = frame.f_code, frame.f_lasti, self.before.get(frame, 0)
            # CPython would raise at the previous instruction. Raising here is the same only if both
            # have the same handler.
            if checks_after(code, before) and handler(code, before) == handler(code, at):
                self.check(frame)
            self.before[frame] = at
        elif event == "return":
            self.before.pop(frame, None)
        return self.trace

    def check(self, frame):
        self.left -= self.armed
        if self.left == 0 and self.armed:
            self.armed = False
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise KeyboardInterrupt
