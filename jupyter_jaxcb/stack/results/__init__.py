"""Declared results, and the check of what a host function returns.

`_declared` picks the declaration: `_expressions`, `_annotations`, a ufunc or a dry run.
`_checker` turns it into a function that checks every return value; that of `_exact` accepts less.
For JAX's own callbacks, `_of_jax` makes JAX's own check.
"""

from ._array import ResultError, shown
from ._casting import CONVERTS, MEANING, kind_of
from ._checker import (
    ResultChecker,
    ResultStructureWarning,
    any_structure_checker,
    result_checker,
    undeclared,
)
from ._declared import MISSING, declared_result, is_infer, nothing_in, scalar_of
from ._exact import exact_avals, exact_checker
from ._expressions import result_avals, result_interface
from ._inferred import INFER, Inferred
from ._of_jax import refuse_as_jax
from ._structure import leaf_paths
