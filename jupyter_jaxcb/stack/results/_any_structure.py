"""Accept a result whose structure is not the declared one but whose leaves fit, as JAX does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, tree_structure, tree_unflatten

from ...recording import Site
from ._array import ResultError
from ._checker import ResultChecker, result_checker
from ._structure import difference, flatten_result

# Given to `warnings`, so that a call site in a loop warns once under the default filters.
_warned: dict[Any, Any] = {}


class ResultStructureWarning(UserWarning):
    """A host function returned its arrays in another structure than the declared one.

    `pure_callback` and `io_callback` then use the arrays in order, as JAX does: a list of one array
    passes for that array. The arrays of a dict are in the order of its keys. Decorators and the
    magic raise a `ResultError` instead.
    """


def any_structure_checker(
    name: str,
    out_tree: PyTreeDef,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    site: Site,
    cast: bool = False,
    batch: tuple[int, ...] = (),
) -> ResultChecker:
    """Build a checker as `result_checker`, which warns where only the structure is wrong.

    Args:
        name: the name of the host function, for messages.
        out_tree: the declared structure.
        shapes: the declared shapes, one per leaf.
        dtypes: the declared dtypes, one per leaf.
        site: the call site, which is where the warning points.
        cast: as for `result_checker`.
        batch: as for `result_checker`.
    """
    flat_tree = tree_structure((0,) * len(shapes))
    strict = result_checker(name, out_tree, shapes, dtypes, cast=cast, batch=batch)
    of_leaves = result_checker(name, flat_tree, shapes, dtypes, cast=cast, batch=batch)
    declared = tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, dtypes))

    def check(result: Any) -> tuple[np.ndarray, ...]:
        try:
            return strict(result)
        except ResultError:
            arrays = _fitting(name, result, of_leaves)
            if arrays is None:
                raise
        warnings.warn_explicit(  # outside of the except block, as a filter may make it an error
            f"{difference(name, declared, result)} ({site.flavor} callback, {site.where}). Its "
            "arrays are used in order, as in JAX. Return the declared structure, or declare this "
            "one as the result.",
            ResultStructureWarning,
            site.file,
            site.line,
            registry=_warned,
        )
        return arrays

    return check


def _fitting(name: str, result: Any, check: ResultChecker) -> tuple[np.ndarray, ...] | None:
    """Return the leaves of `result` as arrays; None if their number, shapes or dtypes are wrong."""
    try:
        return check(tuple(flatten_result(name, result)[0]))
    except ResultError:
        return None
