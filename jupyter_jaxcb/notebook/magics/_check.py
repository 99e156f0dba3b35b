"""``%jax_check f(x)``: check the contract of a callback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from IPython.core.magic import (
    Magics,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)

from ...diagnostics import check
from ...recording import Check, Checks
from ._call_argument import call_argument

_MAGIC = "%jax_check"


@magics_class
class CheckMagics(Magics):
    """The magic that checks whether a callback keeps its contract."""

    @output_can_be_silenced
    @needs_local_scope
    @no_var_expand
    @line_magic
    def jax_check(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Check | Checks:
        """``%jax_check bessel(1, z)``: run a callback and report what breaks its contract.

        Checks that the same inputs give the same result, that inputs stay unchanged, that the
        result is as declared, that batches give the results of their elements, that the derivative
        rule agrees with finite differences, and that it does not use JAX. The runs are not
        recorded, and none begins after ten seconds. Of any other function, as in ``%jax_check
        jax.jit(model)(x)``, the callbacks that it calls are checked. Same as
        ``jupyter_jaxcb.check(bessel, 1, z)``.
        """
        __tracebackhide__ = True
        names = {**self.shell.user_ns, **(local_ns or {})}  # type: ignore[union-attr]
        function, args, kwargs = call_argument(line.strip().removesuffix(";"), names, _MAGIC)
        return check(function, *args, **kwargs)
