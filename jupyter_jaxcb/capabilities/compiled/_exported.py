"""Compiled callbacks in exported programs, which find their functions by name.

A program that runs in another process cannot refer to memory of this one. Its custom call has a
text instead, with the name of the function and the interface of the call site. The first call
compiles the function that is registered under that name; later ones find its block in a table.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import threading
import weakref
from typing import Any

import numpy as np

from ...recording import Aval, LoweredSite, Site, VmapLevel, method_named
from ...stack.call import HostCallback, HostFunction
from . import _failure, _handler
from ._block import Block
from ._interface import Array, Buffer, Constant, Interface, Operand, interface_of
from ._native import LAST_NAME, address_for_machine_code, named

_BYTES = 8
_hosts: weakref.WeakValueDictionary[str, HostFunction] = weakref.WeakValueDictionary()
_blocks: dict[int, Block] = {}  # by key; programs that were loaded are never known to be gone
_problems: dict[int, str] = {}  # by thread
_lock = threading.RLock()


def register_name(host: HostFunction) -> None:
    """Let exported programs call `host` by its name, also those that called another one."""
    with _lock:
        _hosts[host.name] = host
        for block in _blocks.values():
            if block.host.name == host.name:
                block.follow(host)


def named_call(callback: HostCallback, lowered: LoweredSite) -> tuple[str, dict[str, Any]]:
    """Return the name of the custom call for an exported program, and its attributes.

    Raises:
        TypeError: if numba has no type for an argument, or the argument cannot be written as text.
        NotImplementedError: for a batch of unknown size, or if the name is not unique.
    """
    name = callback.host.name
    if not name.isidentifier() or _hosts.get(name) is not callback.host:
        raise NotImplementedError(
            f"cannot export {callback}: programs find functions by their name, and {name} is not "
            "the only one. Give each function a name of its own, with def."
        )
    interface = interface_of(callback, lowered)
    for _, value in _constants(interface):
        if type(value) not in (int, float, complex, bool, str):
            raise TypeError(
                f"cannot export {callback} with the static argument {value!r}: only numbers and "
                "strings can be exported. Pass an array."
            )
    if not all(isinstance(level.size, int) for level in lowered.levels):
        raise NotImplementedError(
            f"cannot export {callback} under a vmap of unknown size. Export it for a size."
        )
    text = repr((name, lowered.site.flavor, _plain(interface), _facts(lowered)))
    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_BYTES).digest(), "little")
    return _handler.NAMED_TARGET, {"block": np.uint64(key % 2**63 | 1), "function": text}


def _constants(interface: Interface) -> Any:
    trees = [*interface.args, *(value for _, value in interface.kwargs)]
    while trees:
        tree = trees.pop()
        if type(tree) is tuple:
            trees += tree
        elif isinstance(tree, Constant):
            yield tree.kind, tree.value


def _plain(interface: Interface) -> tuple[Any, ...]:
    """Return an interface as a literal."""
    return (
        *([(one.dtype.str, one.rank, one.inner) for one in arrays]
          for arrays in (interface.operands, interface.results)),
        [_written(arg) for arg in interface.args],
        [(name, _written(arg)) for name, arg in interface.kwargs],
        interface.paths,
        interface.cast,
        interface.writes,
    )  # fmt: skip


def _written(tree: Any) -> Any:
    if type(tree) is tuple:
        return [_written(part) for part in tree]
    if isinstance(tree, Constant):
        return ("constant", tree.value)
    return None if tree is None else (type(tree).__name__, tree.number)


def _read(tree: Any) -> Any:
    if tree is None:
        return None
    if isinstance(tree, list):
        return tuple(map(_read, tree))
    kind, value = tree
    if kind == "constant":
        return Constant(value, type(value))
    return {"Operand": Operand, "Buffer": Buffer}[kind](value)


def _facts(lowered: LoweredSite) -> tuple[Any, ...]:
    avals = [[tuple(aval) for aval in avals] for avals in (lowered.operands, lowered.results)]
    levels = [(v.size, v.method, v.batched) for v in lowered.levels]
    return *avals, levels, lowered.masked


def _block(text: str) -> Block:
    """Return the block for the text of a custom call."""
    name, flavor, plain, facts = ast.literal_eval(text)
    host = _hosts.get(name)
    if host is None:
        raise LookupError(
            f"this program calls {name}, and no function of that name is registered here. Register "
            f"it as it was when the program was exported: @jaxcb.{flavor}(..., compile='numba') "
            f"above def {name}."
        )
    operands, results, args, kwargs, paths, cast, writes = plain
    given, declared = (
        tuple(Array(np.dtype(dtype), rank, inner) for dtype, rank, inner in arrays)
        for arrays in (operands, results)
    )
    interface = Interface(
        given,
        declared,
        tuple(map(_read, args)),
        tuple((key, _read(arg)) for key, arg in kwargs),
        tuple(map(tuple, paths)),
        cast=cast,
        writes=writes,
        masked=facts[3],
    )
    passed, received = (tuple(Aval(*aval) for aval in avals) for avals in facts[:2])
    levels = tuple(VmapLevel(size, method_named(name), on) for size, name, on in facts[2])
    site = Site(flavor, name, "exported program", 1, 0, cell=False)
    lowered = LoweredSite(site, None, -1, passed, received, levels, masked=facts[3])
    return Block(host, interface, lowered, None)


def _find(frame: int, key: int) -> int:
    """Return the address of the block for a custom call, entered into the table; 0 if it fails."""
    try:
        with _lock:
            if key not in _blocks:
                if len(_blocks) > LAST_NAME // 2:
                    raise LookupError("a process can call 2,048 callbacks of exported programs")
                _blocks[key] = _block(_text(frame))
                place = key & LAST_NAME
                while named[2 * place]:
                    place = (place + 1) & LAST_NAME
                named[2 * place + 1] = _blocks[key].address
                named[2 * place] = key
            return _blocks[key].address
    except BaseException as error:
        _problems[threading.get_ident()] = str(error)
        return 0


def _explain(frame: int, key: int) -> int:
    """Return the address of an XLA_FFI_Error that says why `_find` failed."""
    return _failure.xla_error(frame, _problems.pop(threading.get_ident(), "interrupted"))


def _text(frame: int) -> str:
    """Return the text of a custom call: its second attribute, in the order of names."""
    attributes = _failure.word(frame, _handler.ATTRIBUTES)
    span = _failure.word(attributes, 1)
    return ctypes.string_at(_failure.word(span, 0), _failure.word(span, 1)).decode()


named[-2:] = [address_for_machine_code(function) for function in (_find, _explain)]
