"""Say which private names of JAX that this package uses are missing or changed in another JAX.

``python tests/upstream/canary.py PATH_TO_JAX`` reads the source of that JAX, a checkout or a
``site-packages`` folder, without importing it, and prints a line for each use in
``stack/jax_compat`` that would fail there. The exit status is 1 if there are any. A line of
``jax_compat`` that ends with ``# until JAX 0.8`` or ``# since JAX 0.9`` counts only there.

It does not see compiled code, values whose class the source does not show, and changed behavior.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

try:
    from ._tree import Class, Function, MissingError, Tree
    from ._uses import COMPAT, Annotation, Call, Frame, Replacement, Use, uses
except ImportError:
    from _tree import Class, Function, MissingError, Tree
    from _uses import COMPAT, Annotation, Call, Frame, Replacement, Use, uses

VERSIONS = re.compile(r"# .*\b(until|since) JAX (\d+)\.(\d+)$")


def findings(tree: Tree, found: list[Use]) -> list[tuple[Use, str]]:
    """Return the uses that would fail with the JAX in `tree`, each with what is wrong."""
    paths = {use.path for use in found}
    wrong = []
    for use in found:
        if not counts(use, tree.version()):
            continue
        try:
            problem = check(tree, use)
        except MissingError as error:
            problem = f"{error} is missing" if is_first(use, str(error), paths) else None
        if problem is not None:
            wrong.append((use, problem))
    return wrong


def is_first(use: Use, missing: str, paths: set[str]) -> bool:
    """Return whether `use` names what is missing, and not only something that it has."""
    shorter = {path for path in paths if use.path.startswith(path)} - {use.path}
    named = use.how is None or isinstance(use.how, Frame | Annotation)
    return named and not any(path.startswith(missing) for path in shorter)


def counts(use: Use, version: tuple[int, int]) -> bool:
    """Return whether the line of `use` runs with this version of JAX."""
    line = (COMPAT / use.file).read_text("utf-8").splitlines()[use.line - 1]
    noted = VERSIONS.search(line)
    if noted is None:
        return True
    limit = int(noted[2]), int(noted[3])
    return version <= limit if noted[1] == "until" else version >= limit


def check(tree: Tree, use: Use) -> str | None:
    """Return what is wrong with a use; None if nothing is, or the source does not show it."""
    found = tree.find(use.path)
    if isinstance(use.how, Frame):
        return check_frame(tree, use.path, use.how)
    of_class = isinstance(tree.find(use.path.rpartition(".")[0]), Class)
    if isinstance(found, Class) and isinstance(use.how, Call):
        found, of_class = tree.constructor(found), False
    if not isinstance(found, Function):
        return None
    if isinstance(use.how, Call):
        return check_call(use.path, found, use.how, found.is_method and not of_class)
    if isinstance(use.how, Replacement):
        return check_replacement(use.path, found, use.how)
    return None


def check_frame(tree: Tree, module: str, frame: Frame) -> str | None:
    """Return what is wrong with a function that is recognized by its frames."""
    functions = tree.functions_named(module, frame.name)
    if not functions:
        return f"{module} has no function {frame.name!r}"
    inside = (node for function in functions for node in ast.walk(function))
    names = {getattr(node, "id", getattr(node, "arg", None)) for node in inside}
    if frame.variable and frame.variable not in names:
        return f"{frame.name} in {module} has no variable {frame.variable!r}"
    return None


def check_call(path: str, function: Function, call: Call, is_bound: bool) -> str | None:
    """Return why `function`, or the method of an object, does not take the arguments of a call."""
    arguments = function.node.args
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][is_bound:]
    extra = [one.arg for one in arguments.kwonlyargs]
    if call.positional > len(named) and not arguments.vararg:
        return f"{path} takes {len(named)} positional arguments, not {call.positional}"
    unknown = set(call.keywords) - {*named[call.positional :], *extra}
    if unknown and not arguments.kwarg:
        return f"{path} has no parameter {min(unknown)!r}"
    required = named[: len(named) - len(arguments.defaults)][call.positional :]
    defaults = zip(extra, arguments.kw_defaults, strict=True)
    required += [name for name, default in defaults if default is None]
    missing = [name for name in required if name not in call.keywords]
    if call.is_complete and missing:
        return f"{path} requires {missing[0]!r}"
    return None


def check_replacement(path: str, function: Function, new: Replacement) -> str | None:
    """Return why a function with the parameters `new` cannot stand for `function`."""
    arguments = function.node.args
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    extra = [one.arg for one in arguments.kwonlyargs]
    first = tuple(named[: len(new.positional)])
    same = function.is_method or first == new.positional
    if not same or len(first) < len(new.positional):
        return f"{path} begins with the parameters {first}, not {new.positional}"
    unknown = set(new.keywords) - {*named, *extra}
    if unknown and not arguments.kwarg:
        return f"{path} has no parameter {min(unknown)!r}"
    return None


def main(path: str) -> int:
    """Print the findings; return the exit status."""
    found = uses()
    wrong = findings(Tree(Path(path)), found)
    for use, problem in wrong:
        kind = "required" if use.is_required else "optional"
        place = f"{COMPAT.relative_to(COMPAT.parents[2])}/{use.file}:{use.line}"
        print(f"{place}: {problem} ({kind})")
    if not wrong:
        print(f"{len(found)} uses of private JAX: none is missing or changed in {path}")
    return int(bool(wrong))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/upstream/canary.py PATH_TO_JAX")
    sys.exit(main(sys.argv[1]))
