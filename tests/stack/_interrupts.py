"""KeyboardInterrupt where CPython looks for one, in code of this package's."""

import contextlib
import dis
import functools
import gc
import os
import sys

import jupyter_jaxcb as jaxcb

OWN = (os.path.dirname(jaxcb.__file__), contextlib.__file__)
# After which CPython looks whether an exception waits; and at the beginning of a function.
LOOKS = ("CALL", "JUMP_BACKWARD", "RESUME")


@functools.cache
def handlers(code):
    return [(e.start, e.end, e.target) for e in dis._parse_exception_table(code)]


def handler(code, at):
    return [target for start, end, target in handlers(code) if start <= at < end]


def looks(code, at):
    """Whether CPython looks after the instruction; not after a RESUME of 2 or more."""
    name = dis.opname[code.co_code[at]]
    return name.startswith(LOOKS) and not (name == "RESUME" and code.co_code[at + 1] >= 2)


@functools.cache
def resume(code):
    """Where a function begins: its first RESUME."""
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


class Interrupts:
    """Raises KeyboardInterrupt where CPython looks for one the n-th time, while it is armed.

    Attributes:
        left: how many times more; not above 0 once it was raised.
        place: where it was raised, in words.
    """

    def __init__(self, n):
        self.left, self.armed, self.before = n, True, {}
        self.place = ""

    def __enter__(self):
        gc.disable()  # Python drops what is raised while garbage, generators too, is collected
        sys.settrace(self.trace)

    def __exit__(self, *error):
        sys.settrace(None)
        gc.enable()

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(OWN):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self.before[frame] = resume(frame.f_code)
            if looks(frame.f_code, self.before[frame]):
                self.look(frame)
        elif event == "opcode":
            code, at, before = frame.f_code, frame.f_lasti, self.before.get(frame, 0)
            # What comes of a call is raised at the call: here it is another handler's.
            if looks(code, before) and handler(code, before) == handler(code, at):
                self.look(frame)
            self.before[frame] = at
        elif event == "return":
            self.before.pop(frame, None)
        return self.trace

    def look(self, frame):
        self.left -= self.armed
        if self.left == 0 and self.armed:
            self.armed = False
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise KeyboardInterrupt
