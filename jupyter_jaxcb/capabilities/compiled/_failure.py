"""What compiled code calls in Python: when it fails, and when a cell has replaced the function."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...stack.dispatch import CallElsewhere, starts_unchecked
from ...stack.errors import describe
from ._native import address_for_machine_code, address_of, forever

_INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL
_API, _ERROR_CREATE = 2, 6  # words of XLA_FFI_CallFrame and XLA_FFI_Api
_ERROR_SIZE = 32  # bytes of XLA_FFI_Error_Create_Args


class Site(Protocol):
    """What a block belongs to, see `_block.Block`."""

    def resolve(self) -> int: ...
    def failed(self, frame: int, status: int, start: int) -> BaseException: ...
    def note(self, frame: int, version: int, start: int, end: int) -> None: ...
    def reported(self, error: BaseException) -> BaseException: ...
    def running(self) -> CallElsewhere | None: ...


# The exceptions of compiled functions, by the address of the call frame. Machine code adds them.
kept: dict[int, BaseException] = {}
forever(kept)
sites: weakref.WeakValueDictionary[int, Site] = weakref.WeakValueDictionary()  # by block address


@starts_unchecked("fail")
@starts_unchecked("resolve")
@starts_unchecked("note")
def _called_by_machine_code() -> tuple[Callable[..., int], ...]:
    def fail(frame: int, block: int, status: int, start: int) -> int:
        """Return the address of an XLA_FFI_Error with the message of the host function's error."""
        try:
            text = str(sites[block].failed(frame, status, start))
        except BaseException as error:
            text = describe(error)
        return xla_error(frame, text)

    def resolve(frame: int, block: int) -> int:
        """Return the address of the kernel for the current function; 0 if it cannot be compiled."""
        try:
            return sites[block].resolve()
        except BaseException:
            return 0

    def note(frame: int, block: int, version: int, start: int, end: int) -> int:
        """Record a crossing with a mask; return 0, or the address of an XLA_FFI_Error."""
        try:
            sites[block].note(frame, version, start, end)
            return 0
        except BaseException as error:  # an interrupt
            return xla_error(frame, str(sites[block].reported(error)))

    return fail, resolve, note


FAIL, RESOLVE, NOTE = map(address_for_machine_code, _called_by_machine_code())


def _error_arguments(message: Any) -> np.ndarray:
    return np.array([_ERROR_SIZE, 0, ctypes.addressof(message), _INTERNAL], np.int64)


_UNEXPLAINED = ctypes.create_string_buffer(b"a compiled callback failed, and Ctrl-C hid its error")
# The arguments of XLA_FFI_Error_Create for a failure that Python did not explain.
_FALLBACK = _error_arguments(_UNEXPLAINED)
forever(_UNEXPLAINED, _FALLBACK)
FALLBACK = address_of(_FALLBACK)


def xla_error(frame: int, text: str) -> int:
    """Create an XLA_FFI_Error with a message; return its address."""
    message = ctypes.create_string_buffer(text.encode())
    create = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
        word(word(frame, _API), _ERROR_CREATE)
    )
    arguments = _error_arguments(message)  # both must live until XLA has copied them
    return create(arguments.ctypes.data)


def word(address: int, place: int) -> int:
    """Return the word number `place` from an address."""
    return ctypes.c_int64.from_address(address + 8 * place).value
