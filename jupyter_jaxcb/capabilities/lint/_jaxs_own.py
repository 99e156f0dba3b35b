"""Warn where JAX's own callbacks give wrong numbers: in a ``shard_map``, and in loop conditions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ...recording import Site, where_now

_shown: dict[str, dict] = {}  # by file: what Python has shown, see `warnings.warn_explicit`


class NotVaryingWarning(UserWarning):
    """JAX takes results of one of its own callbacks in a ``shard_map`` for equal on all devices.

    Its arguments differ from device to device. So gradients can be too large by the number of
    devices, and `out_specs` can return the result of one device for all. The message names the line
    and the mesh axes. The results of this package's callbacks vary as their arguments do. To
    silence the warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.NotVaryingWarning)
    """


def warn_of_lost_axes(site: Site, axes: Sequence[str]) -> None:
    """Warn that results of a callback of JAX's own API do not vary over `axes`, if there are any.

    Python shows the warning once for each line.
    """
    if not axes:
        return
    names, plural = ", ".join(map(repr, axes)), "es" if len(axes) > 1 else "is"
    warnings.warn_explicit(
        f"the {site.flavor} callback {site.function} ({where_now(site)}) has arguments that "
        f"vary over the mesh ax{plural} {names}, but JAX takes its results for equal on all "
        "devices. Gradients can be too large by the number of shards, and out_specs can drop "
        "shards. Call the function of jupyter_jaxcb with the same name instead, or "
        f'jax.lax.pcast(result, ({names},), to="varying") right after the call.',
        NotVaryingWarning,
        site.file,
        site.line,
        registry=_shown.setdefault(site.file, {}),
    )


class FinishedElementsWarning(UserWarning):
    """JAX computes wrong results of a vmapped while loop with an ordered callback in its condition.

    It goes on with batch elements that have finished, as long as one has not. The message names the
    line of the callback. With a callback of this package the results are right. To silence the
    warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.FinishedElementsWarning)
    """


def warn_of_finished_elements(site: Site) -> None:
    """Warn that a while loop around an ordered callback of JAX's own API computes wrong results.

    Python shows the warning once for each line.
    """
    warnings.warn_explicit(
        f"the {site.flavor} callback {site.function} ({where_now(site)}) is ordered, in a "
        "vmapped while loop with an ordered callback in its condition. JAX goes on with batch "
        "elements that have finished, so results of the loop can be wrong. Drop ordered=True, make "
        "the call outside of the condition, or call the function of jupyter_jaxcb with the same "
        "name instead.",
        FinishedElementsWarning,
        site.file,
        site.line,
        registry=_shown.setdefault(site.file, {}),
    )
