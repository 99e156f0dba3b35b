"""Declared results, and the check of what a host function returns.

`_declared` picks the declaration and refuses what declares nothing. At each bind, `_expressions`
turns it into shapes and dtypes, with `_annotations` and `_inferred` for results that are not
written down. `_checker` makes a function from these that checks every return value; `_array`
converts one array.
"""

from ._array import CONVERTS, MEANING, ResultError, kind_of, shown
from ._checker import (
    ResultChecker,
    ResultStructureWarning,
    any_structure_checker,
    leaf_paths,
    result_checker,
    undeclared,
)
from ._declared import MISSING, declared_result, nothing_in, scalar_of
from ._expressions import exact_avals, result_avals, result_interface
from ._inferred import INFER, Inferred
