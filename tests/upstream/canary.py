"""Say which private names of JAX that this package uses are missing or changed in another JAX.

``python tests/upstream/canary.py PATH_TO_JAX`` reads the source of that JAX, a checkout or a
``site-packages`` folder, without importing it, and prints a line for each name of `private.txt`
that is missing or takes other arguments there. The exit status is 1 if there are any.

It does not see compiled code and changed behavior.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    from .private import Name, names
except ImportError:
    from private import Name, names

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEPTH = 12  # imports to follow


class Tree:
    """The modules of a JAX, by their source.

    Args:
        path: a folder with the folder ``jax``.

    Raises:
        SystemExit: there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.parsed = path, dict[str, ast.Module | None]()
        if self.module("jax") is None or self.module("jax.version") is None:
            raise SystemExit(f"{path} has no source of JAX: name a folder with the folder jax.")

    @property
    def version(self) -> tuple[int, ...]:
        """Return the major and minor number."""
        source = (self._path / "jax" / "version.py").read_text("utf-8")
        number = re.search(r'^_version = "(\d+)\.(\d+)', source, re.MULTILINE)
        return (98, 0) if number is None else (int(number[1]), int(number[2]))

    def module(self, name: str) -> ast.Module | None:
        """Return the syntax tree of a module; None if there is none."""
        if name not in self.parsed:
            place = self._path.joinpath(*name.split("."))
            files = (place.with_suffix(".py"), place / "__init__.py")
            file = next((one for one in files if one.is_file()), None)
            try:
                empty = ast.Module([], []) if place.is_dir() else None  # a namespace package
                self.parsed[name] = ast.parse(file.read_text("utf-8")) if file else empty
            except SyntaxError as error:
                raise SystemExit(f"{file}: {error}. Run the canary with a newer Python.") from None
        return self.parsed[name]

    def find(self, module: str, name: str, depth: int = DEPTH) -> tuple[str, ast.AST] | None:
        """Return the module that defines a name, and the statement; None if nothing binds it."""
        tree = self.module(module)
        if tree is None or not depth:
            return None
        statement, found = bindings(tree).get(name), None
        if statement is not None:
            if isinstance(statement, ast.ImportFrom):
                (own,) = (one.name for one in statement.names if name in (one.asname, one.name))
                found = self.find(self._source(statement, module), own, depth - 1)
            elif isinstance(value := getattr(statement, "value", None), ast.Name):
                found = self.find(module, value.id, depth - 1)
            return found or (module, statement)
        inner = self.module(f"{module}.{name}")
        return None if inner is None else (f"{module}.{name}", inner)

    def _source(self, statement: ast.ImportFrom, module: str) -> str:
        is_package = self._path.joinpath(*module.split("."), "__init__.py").is_file()
        parents = module.split(".")[: is_package - statement.level or None]
        return ".".join([*(parents if statement.level else ()), *filter(None, [statement.module])])

    def attribute(self, module: str, kind: str, name: str) -> tuple[str, ast.AST] | None:
        """Return what a class, or a class from which it inherits, defines as `name`."""
        module, node = self.find(module, kind) or ("", None)
        if not isinstance(node, ast.ClassDef):
            return None
        if name in bindings(node) or name in set_on_self(node):
            return module, bindings(node).get(name, node)
        for base in node.bases:
            owner, _, last = ast.unparse(base).rpartition(".")
            source = (self.find(module, owner) or ("", None))[0] if owner else module
            found = self.attribute(source, last, name)
            if found is not None:
                return found
        return None


@functools.cache
def bindings(node: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """Return the names that a module or class binds, each with the first statement that does."""
    found: dict[str, ast.stmt] = {}
    for statement in statements(node.body):
        for name in bound(statement):
            found.setdefault(name, statement)
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of the blocks in it, but not those of functions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            inner = [*statement.body, *getattr(statement, "orelse", [])]
            for handler in getattr(statement, "handlers", []):
                inner += handler.body
            yield from statements(inner)


def bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    if isinstance(statement, Function | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {one.asname or one.name.partition(".")[0] for one in statement.names}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}


@functools.cache
def set_on_self(node: ast.ClassDef) -> set[str]:
    """Return the attributes that methods set, and those in ``__slots__``."""
    attributes = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
    found = {one.attr for one in attributes if isinstance(one.ctx, ast.Store)}
    slots = (one for one in node.body if "__slots__" in bound(one))
    texts = (one for slot in slots for one in ast.walk(slot) if isinstance(one, ast.Constant))
    return found | {one.value for one in texts}


@functools.cache
def functions_of(module: ast.Module) -> dict[str, list[Function]]:
    """Return the functions of a module by name, also methods and inner functions."""
    found: dict[str, list[Function]] = {}
    for node in ast.walk(module):
        if isinstance(node, Function):
            found.setdefault(node.name, []).append(node)
    return found


def problem_of(name: Name, tree: Tree) -> str | None:
    """Return what is wrong with a name in another JAX; None if nothing is."""
    if name.is_frame:
        return problem_of_frame(name, tree)
    kind, _, last = name.name.rpartition(".")
    if not last:
        return None if tree.module(name.module) else f"{name.path} is missing"
    found = tree.attribute(name.module, kind, last) if kind else tree.find(name.module, last)
    if found is None:
        return f"{name.path} is missing"
    if name.parameters is None or not isinstance(found[1], Function):
        return None
    return problem_of_arguments(name, found[1].args, is_method=bool(kind))


def problem_of_frame(name: Name, tree: Tree) -> str | None:
    """Return what is wrong with a function that is recognized by its frames."""
    module = tree.module(name.module)
    functions = [] if module is None else functions_of(module).get(name.name, [])
    if not functions:
        return f"{name.module} has no function {name.name!r}"
    inside = [node for function in functions for node in ast.walk(function)]
    known = {getattr(node, "id", getattr(node, "arg", None)) for node in inside}
    missing = [one for one in name.parameters or () if one not in known]
    return f"{name.name} in {name.module} has no variable {missing[0]!r}" if missing else None


def problem_of_arguments(name: Name, arguments: ast.arguments, *, is_method: bool) -> str | None:
    """Return why a function does not take the arguments that the table has."""
    wanted = list(name.parameters or ())
    is_complete = "..." not in wanted
    at = wanted.index("*") if "*" in wanted else len(wanted)
    positional, keywords = (
        [one for one in part if one != "..."] for part in (wanted[:at], wanted[at + 1 :])
    )
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][is_method:]
    extra = [one.arg for one in arguments.kwonlyargs]
    if len(positional) > len(named) and not arguments.vararg:
        return f"{name.path} takes {len(named)} positional arguments, not {len(positional)}"
    if any(own not in ("_", other) for own, other in zip(positional, named, strict=False)):
        first = ", ".join(named[: len(positional)])
        return f"{name.path} begins with the parameters ({first}), not ({', '.join(positional)})"
    unknown = [one for one in keywords if one not in (*named[len(positional) :], *extra)]
    if unknown and not arguments.kwarg:
        return f"{name.path} has no parameter {unknown[0]!r}"
    required = named[len(positional) : len(named) - len(arguments.defaults)]
    defaults = zip(extra, arguments.kw_defaults, strict=True)
    required += [one for one, default in defaults if default is None]
    missing = [one for one in required if one not in keywords]
    return f"{name.path} requires {missing[0]!r}" if is_complete and missing else None


def problems(tree: Tree) -> Iterator[str]:
    """Yield a line for each name that is missing or changed in another JAX."""
    version = tree.version
    for name in names():
        if name.is_in(version) and not name.is_compiled:
            problem = problem_of(name, tree)
            if problem is not None:
                files = ", ".join(f"{file}.py" for file in name.files)
                lost = name.lost if name.is_required else f"lost: {name.lost}"
                yield f"{files}: {problem} ({lost})"


def main(path: str) -> int:
    """Print the problems; return the exit status."""
    found = list(problems(Tree(Path(path))))
    print(*found or [f"no private name of JAX is missing or changed in {path}"], sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/upstream/canary.py PATH_TO_JAX")
    sys.exit(main(sys.argv[1]))
