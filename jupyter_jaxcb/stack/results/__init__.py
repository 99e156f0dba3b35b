"""Declared results, and the check of what a host function returns.

`_declared` picks the declaration: `_expressions`, `_annotations`, a ufunc or a dry run.
`_checker` turns it into a function that checks every return value; that of `_exact` accepts less.
"""

from ._array import ResultError as ResultError
from ._array import shown as shown
from ._casting import CONVERTS as CONVERTS
from ._casting import MEANING as MEANING
from ._casting import kind_of as kind_of
from ._checker import ResultChecker as ResultChecker
from ._checker import ResultStructureWarning as ResultStructureWarning
from ._checker import any_structure_checker as any_structure_checker
from ._checker import result_checker as result_checker
from ._declared import MISSING as MISSING
from ._declared import declared_result as declared_result
from ._declared import is_infer as is_infer
from ._declared import nothing_in as nothing_in
from ._declared import scalar_of as scalar_of
from ._exact import exact_avals as exact_avals
from ._exact import exact_checker as exact_checker
from ._expressions import result_avals as result_avals
from ._expressions import result_interface as result_interface
from ._inferred import INFER as INFER
from ._inferred import Inferred as Inferred
from ._structure import leaf_paths as leaf_paths
