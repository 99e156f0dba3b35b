"""``%jax_check f(x)``: the contract of a callback, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)

from ...diagnostics import check
from ...recording import Check
from ...stack import Callback
from ._call_argument import question

_MAGIC = "%jax_check"


@magics_class
class CheckMagics(Magics):
    """The magic that runs a callback to see whether it keeps its contract."""

    @output_can_be_silenced
    @needs_local_scope
    @no_var_expand
    @line_magic
    def jax_check(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Check:
        """``%jax_check bessel(1, z)``: runs a callback, and says what breaks its contract.

        Same inputs twice, inputs unchanged, the declared result, batches as their elements, the
        derivative rule against differences, JAX inside of it. The runs are not recorded, and after
        ten seconds no more begins. It is ``jupyter_jaxcb.check(bessel, 1, z)``.
        """
        __tracebackhide__ = True
        names = {**self.shell.user_ns, **(local_ns or {})}  # type: ignore[union-attr]
        function, args, kwargs = question(line.strip().removesuffix(";"), names, _MAGIC)
        if not isinstance(function, Callback):
            raise UsageError(
                f"{_MAGIC} takes a call of a registered callback, not of {function!r}. Register it "
                "first: %%jax_callback pure ..."
            )
        return check(function, *args, **kwargs)
