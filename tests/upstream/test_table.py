"""The table of JAX's private names has what `jax_compat` uses, and the installed JAX has it."""

import ast
import builtins
import collections
import contextlib
import functools
import importlib
import inspect
import re
import threading
import types
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest
from jax._src.array import ArrayImpl
from jax.extend import core

from .private import COMPAT, names

NAMES = [name for name in names() if name.is_in(jax.__version_info__) and not name.is_compiled]
FILES = sorted(file.stem for file in COMPAT.glob("_*.py"))
PRIVATE = ("jax._src", "jax.interpreters", "jax.extend")
# Whose attributes are no names of JAX's, or are public.
KINDS = [
    *(one for one in (*vars(builtins).values(), *vars(types).values()) if isinstance(one, type)),
    *(collections.deque, contextlib.ExitStack, functools.partial, inspect.Parameter, Path),
    *(inspect.Signature, threading.Thread, threading.local, type(threading.Lock())),
    *(weakref.WeakKeyDictionary, np.dtype, np.ndarray, ArrayImpl, jax.core.ShapedArray, jax.Device),
    *(jax.profiler.ProfileOptions, jax.profiler.ProfileData, jax.sharding.Mesh),
    *(
        jax.sharding.NamedSharding,
        jax.sharding.SingleDeviceSharding,
        core.ClosedJaxpr,
        core.Jaxpr,
        core.JaxprEqn,
    ),
    core.Primitive,
]
PUBLIC = {name for kind in KINDS for name in dir(kind) if name[0] != "_" or name[-1] == "_"} | {
    "axis_names", "profile_data", "__dataclass_fields__",  # no attributes of the class
}  # fmt: skip


@functools.cache
def nodes(file):
    """The syntax nodes of a module of `jax_compat`, without docstrings."""
    tree = ast.parse((COMPAT / f"{file}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list):
            node.body = [one for one in node.body if not is_text(one)]
    return list(ast.walk(tree))


def is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def exists(name):
    """Return whether the installed JAX has a name, by importing it."""
    owner = importlib.import_module(name.module)
    source = Path(inspect.getfile(owner)).read_text("utf-8")
    if name.is_frame:
        return f"def {name.name}(" in source
    *kinds, last = name.name.split(".")
    for kind in kinds:
        owner = getattr(owner, kind)
    field = re.compile(rf"self\.{last}\b.* = |^ +{last}:", re.MULTILINE)
    return not last or hasattr(owner, last) or (kinds and field.search(source))


def test_installed_jax_has_each_name():
    assert [name.path for name in NAMES if not exists(name)] == []


def test_each_name_is_used_where_the_table_says():
    found = {file: set(re.findall(r"\w+", ast.unparse(nodes(file)[0]))) for file in FILES}
    for name in names():
        assert [file for file in name.files if name.word not in found[file]] == [], name


def test_required_names_are_those_whose_module_checks_them():
    """A name that is missing must not break the package in another way than in words."""
    for name in names():
        assert name.is_required == ("_required" in name.files) or name.is_compiled, name


@functools.cache
def own_names():
    """Names that `jax_compat` defines itself."""
    found = set()
    for node in (node for file in FILES for node in nodes(file)):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            fields = (one for one in node.body if isinstance(one, ast.Assign | ast.AnnAssign))
            found |= {ast.unparse(one).partition(" ")[0].rstrip(":") for one in fields}
    return found


def is_public(node, roots):
    """Return whether an attribute is of a module of Python's, or of a public one of JAX's."""
    text = ast.unparse(node)
    is_known = text.partition(".")[0] in roots and not text.startswith(PRIVATE)
    return text in PRIVATE or is_known


def used(file):
    """Yield the names that a module of `jax_compat` uses of values that it does not define."""
    imports = [node for node in nodes(file) if isinstance(node, ast.Import | ast.ImportFrom)]
    private = [one for one in imports if getattr(one, "module", "").startswith(PRIVATE)]
    public = [one for one in imports if one not in private and not getattr(one, "level", 0)]
    roots = {one.asname or one.name.partition(".")[0] for node in public for one in node.names}
    modules = [importlib.import_module(one.module) for one in NAMES if file in one.files]
    for node in private:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in nodes(file):
        if isinstance(node, ast.Attribute) and not is_public(node, roots):
            yield node.attr
        elif isinstance(node, ast.Call) and node.args and not is_public(node.args[0], roots):
            if re.search("attr$|JaxFunction$|module$", ast.unparse(node.func)):
                yield from (one.value for one in node.args if isinstance(one, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if "_" in node.value and any(hasattr(module, node.value) for module in modules):
                yield node.value  # for example in a tuple of names


@pytest.mark.parametrize("file", FILES)
def test_each_use_is_in_the_table(file):
    known = own_names() | PUBLIC
    for name in names():
        if file in name.files:
            known |= {name.path, name.module, name.word, *name.name.split(".")}
            known |= set(name.parameters or ())
    assert {one for one in used(file) if isinstance(one, str) and one} - known == set()


def test_modules_that_the_package_passes_on_are_checked():
    """`jax_compat` exports whole modules, of which other folders use parts."""
    found = {
        f"jax.interpreters.{name}"
        for file in COMPAT.parent.rglob("*.py")
        for name in re.findall(r"jax_compat\.((?:ad|batching|mlir)\.\w+)", file.read_text("utf-8"))
    }
    assert found
    assert found <= {name.path for name in names() if name.is_required}
