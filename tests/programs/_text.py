"""Write a program as the text of a Python module."""

from __future__ import annotations

import re

from ._program import Function, Host, Program

_NAME = re.compile(r"\$(\d+)")


class Writer:
    """The lines of a program and the host function that each of them binds."""

    def __init__(self, first_line: int = 1) -> None:
        self.lines: list[str] = []
        self.binds: dict[int, str] = {}  # line -> host function
        self.rules: set[int] = set()  # the lines of `binds` in derivative rules
        self.statements: dict[int, int] = {}  # id of a statement -> its line
        self._first = first_line

    def write(self, text: str, indent: int = 0, *, host: str = "", rule: bool = False) -> None:
        self.lines.append("    " * indent + text)
        if host:
            number = self._first + len(self.lines) - 1
            self.binds[number] = host
            if rule:
                self.rules.add(number)

    def program(self, program: Program) -> None:
        for function in program.functions():
            self.function(function, 0, frozenset())
            self.write("")

    def function(self, function: Function, indent: int, scope: frozenset[str]) -> None:
        decorator = {"jit": "@jax.jit", "checkpoint": "@jax.checkpoint"}.get(function.decorator)
        if function.decorator.startswith("custom"):
            decorator = f"@jax.{function.decorator}"
        if decorator:
            self.write(decorator, indent)
        parameters = ", ".join(function.parameters)
        self.write(f"def {function.name}({parameters}):", indent)
        self._body(function, indent + 1, scope | set(function.parameters))
        if function.decorator == "custom_jvp":
            self._jvp(function, indent)
        if function.decorator == "custom_vjp":
            self._vjp(function, indent)

    def _body(self, function: Function, indent: int, scope: frozenset[str]) -> None:
        default = function.parameters[0]

        def named(name: str) -> str:
            return name if name in scope else default

        for statement in function.body:
            for inner in statement.functions:
                self.function(inner, indent, scope)
            text = _NAME.sub(
                lambda m, statement=statement: named(statement.arguments[int(m[1])]),
                statement.template,
            )
            for letter, inner in zip("fgh", statement.functions, strict=False):
                text = text.replace(f"${letter}", inner.name)
            targets = ", ".join(statement.targets)
            self.write(f"{targets} = {text}" if targets else text, indent, host=statement.host)
            self.statements[id(statement)] = self._first + len(self.lines) - 1
            scope |= set(statement.targets)
        weights = ["", "0.5 * ", "0.25 * ", "0.125 * "]
        terms = [f"{weights[i % 4]}{named(name)}" for i, name in enumerate(function.result)]
        total = " + ".join(terms) or default
        self.write("return " + (function.ending.replace("$", total) or total), indent)

    def _factor(self, function: Function, indent: int) -> str:
        self._observe(function, indent)
        if not function.factor:
            return "0.5"
        first = function.parameters[0]
        self.write(f"slope = {function.factor}({first})", indent, host=function.factor, rule=True)
        return "slope"

    def _observe(self, function: Function, indent: int) -> None:
        if function.observer:
            text = function.observer.replace("$0", function.parameters[0])
            self.write(text, indent, host=text.split("(")[0], rule=True)

    def _jvp(self, function: Function, indent: int) -> None:
        names = function.parameters
        dots = tuple(f"d{name}" for name in names)
        self.write(f"@{function.name}.defjvp", indent)
        self.write(f"def {function.name}_rule(primals, tangents):", indent)
        self.write(f"({', '.join(names)},), ({', '.join(dots)},) = primals, tangents", indent + 1)
        factor = self._factor(function, indent + 1)
        total = " + ".join(f"{factor} * {dot}" for dot in dots)
        self.write(f"return {function.name}({', '.join(names)}), {total}", indent + 1)

    def _vjp(self, function: Function, indent: int) -> None:
        names = ", ".join(function.parameters)
        self.write(f"def {function.name}_forward({names}):", indent)
        self._observe(function, indent + 1)
        self.write(f"return {function.name}({names}), ({names},)", indent + 1)
        self.write(f"def {function.name}_backward(kept, cotangent):", indent)
        self.write(f"({names},) = kept", indent + 1)
        factor = self._factor(function, indent + 1)
        parts = ", ".join(f"{factor} * cotangent" for _ in function.parameters)
        self.write(f"return ({parts},)", indent + 1)
        name = function.name
        self.write(f"{name}.defvjp({name}_forward, {name}_backward)", indent)


def call_text(host: Host, arguments: list[str], shape: str) -> str:
    """Return the call of a host function as a user would write it."""
    inside = ", ".join(arguments)
    if host.flavor == "print":
        return f'debug_print("{host.name} {{}}", {inside}, ordered={host.ordered})'
    if host.registered:
        return f"{host.name}({inside})"
    if host.pair:
        shape = f"({shape}, {shape})"
    if host.flavor == "pure":
        return f"pure_callback({host.name}, {shape}, {inside}, {host.options()})"
    if host.flavor == "io":
        return f"io_callback({host.name}, {shape}, {inside}, {host.options()})"
    if host.flavor == "debug":
        return f"debug_callback({host.name}, {inside}, {host.options()})"
    effect = f"has_side_effect={host.side_effect}"
    return f'buffer_callback({host.name}, {shape}, {effect}, vmap_method="{host.method}")({inside})'
