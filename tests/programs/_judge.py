"""What all judges of a program share: the runs to judge and the list of findings."""

from __future__ import annotations

from tests.lines import Line

from . import _reach
from ._program import Program
from ._run import Ran

Findings = list[tuple[str, str]]


class Judge:
    """Collect what is wrong with one program; each finding is a kind and a sentence."""

    def __init__(self, program: Program, ran: Ran) -> None:
        self.program, self.ran = program, ran
        self.hosts = {host.name: host for host in program.hosts}
        self.findings: Findings = []
        self.paths = _reach.paths(program)
        self.in_rules = {ran.writer.binds[line] for line in ran.writer.rules}

        self.dropped = {name for name in self.in_rules if self.flavor(name) == "io"} | {
            path.host
            for path in self.paths
            if self.flavor(path.host) == "io" and {"differentiated", "looped"} <= path.flags
        }  # io callbacks that JAX may drop

    def report(self, kind: str, text: str) -> None:
        self.findings.append((kind, text))

    def host_of(self, line: Line) -> str:
        return self.ran.writer.binds.get(line.line, "?")

    def is_masked(self, host: str) -> bool:
        typed = self.hosts[host].typed if host in self.hosts else None
        return typed is not None and typed.masked

    def flavor(self, host: str) -> str:
        return self.hosts[host].flavor if host in self.hosts else "?"
