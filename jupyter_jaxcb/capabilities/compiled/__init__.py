"""Host functions that numba compiles: XLA calls machine code, without Python and its lock.

`_lowering` emits the custom call. `_handler` is what XLA calls, `_block` what it finds there for
one call site, `_kernel` the machine code that loads arguments, calls the function and stores
results; `_direct` calls it in eager code. `_log` records, `_failure` and `_block` turn a failure
into the user's exception. numba is imported with the first compiled callback, so everything else
works without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...stack import options
from ._lowering import lowered_by, note

if TYPE_CHECKING:
    from ...recording import LoweredSite
    from ...stack.call import HostCallback, HostFunction

COMPILERS = ("numba",)


@options.check("compile")
def _check_compiler(compiler: Any) -> Any:
    __tracebackhide__ = True
    if compiler not in COMPILERS:
        raise ValueError(
            f"unknown compiler {compiler!r}. Pass compile='numba', or None to call the function in "
            "Python."
        )
    try:
        import numba
    except ImportError as error:
        raise ImportError(
            f"compile='numba' needs numba, but the import failed ({error}). Run "
            "`pip install 'jupyter_jaxcb[numba]'`, or leave out compile=."
        ) from None
    return compiler


options.refuse("arrays", "compile", "machine code computes with numbers and arrays in memory")


def register_compiled(host: HostFunction) -> None:
    """Prepare a host function that is to be compiled.

    Raises:
        TypeError: if it is something that numba does not compile.
    """
    __tracebackhide__ = True
    from ._function import check_compilable, compile_anew

    check_compilable(host.current, host.name)
    if compile_anew(host.current):
        for same in [host] if host.definition is None else list(host.definition.hosts):
            same.notify()


def _entry(callback: HostCallback, lowered: LoweredSite) -> Callable[[Any], Any]:
    """Return what calls machine code from Python, see `_direct`."""
    __tracebackhide__ = True
    from ._direct import returning_entry, writing_entry

    enter = writing_entry if callback.options.flavor == "buffer" else returning_entry
    return enter(callback, lowered)


options.capability(
    options.Decides.HOW,
    lambda given: given.compile is not None,
    enter=_entry,
    lower=lowered_by,
    note=note,
)
