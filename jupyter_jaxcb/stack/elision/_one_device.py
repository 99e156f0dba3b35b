"""Warn where a program returns a result of JAX's own callbacks that one of its devices has."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ... import jax_compat
from ...recording import Site


class OneDeviceWarning(UserWarning):
    """A result of one of JAX's own callbacks has its values on one of several devices only.

    Under ``jit`` over several devices, and in eager code with an array on several, JAX makes the
    call on one of them. If nothing but ``return`` uses the result, it stays there: JAX takes it for
    equal on all devices, but the other shards, also those of other processes, are zeros. The
    message names the line. Results of this package's callbacks are on all devices. To silence the
    warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.OneDeviceWarning)
    """


_shown: dict[Any, Any] = {}  # Python shows a warning once for each line


def warn_of_one_device(sites: Sequence[Site], shardings: Iterable[Any]) -> None:
    """Warn if one of `shardings`, those of results, has the values on one of several devices.

    Args:
        sites: the calls of JAX's own callbacks that may have returned such a result.
        shardings: those of the results.
    """
    if not any(map(jax_compat.is_on_one_of_several, shardings)):
        return
    calls = dict.fromkeys(
        f"the {site.flavor} callback {site.function} ({site.where})" for site in sites
    )
    warnings.warn_explicit(
        f"a result of {' or '.join(calls)} is returned with its values on one device only; on the "
        "others it is zeros. Call the function of jupyter_jaxcb with the same name instead, or "
        "pass out_shardings= to jax.jit.",
        OneDeviceWarning,
        sites[0].file,
        sites[0].line,
        registry=_shown,
    )
