"""The outputs beside the host trace: what `%jax_explain --matrix` and `%jax_check` show, as HTML.

`_output` has their markup and `report.css` their look, which JupyterLab's own renderer uses too
(`labextension/src/lab/outputs.ts`). `_matrix` and `_check` fill it.
"""

from ._check import check_output
from ._matrix import matrix_output
from ._output import OUTPUT_TYPE, Output, Spot, output, place, status, table, term, toned
