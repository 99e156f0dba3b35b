"""``--executor`` of ``%%jax_callback`` and what goes with it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError

from ...stack import check_executor
from ._options import unquoted

_NUMBERS = {"chunksize": int, "timeout": float, "retries": int}


def executor_arguments(options: argparse.Namespace, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """What the line says of an executor, as keyword arguments of the flavor's decorator.

    Args:
        options: the parsed line.
        namespace: of the user: an executor, a client or a view may stand there under a name.

    Raises:
        UsageError: it is none, takes no work, or a number is none.
    """
    found: dict[str, Any] = {}
    for name, kind in _NUMBERS.items():
        given = getattr(options, name)
        if given is None:
            continue
        if options.executor is None:
            raise UsageError(f"--{name} needs an executor. Write --executor threads too.")
        try:
            number = found[name] = kind(given)
        except ValueError:
            number = -1
        if not (number > 0 or (number == 0 and name == "retries")):
            raise UsageError(f"--{name} takes a number, not {given!r}. Write --{name} 2, say.")
    if options.executor is not None:
        if options.ordered:
            raise UsageError(
                "--executor does not go with --ordered: it makes calls side by side, and ordered "
                "ones come one after the other. Leave one of them out."
            )
        name = unquoted(options.executor)
        executor = namespace.get(name, name) if name.isidentifier() else name
        try:
            check_executor(executor)
        except (TypeError, ValueError) as error:
            raise UsageError(f"--executor {name}: {error}") from None
        found["executor"] = executor
    return found
