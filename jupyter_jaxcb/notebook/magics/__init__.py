"""The magics: argument parsing around functions that work without IPython.

`_callback` has ``%%jax_callback``, ``%jax_callbacks`` and ``%jax_explain``;
`_record`, `_check` and `_watch` have one magic each.
"""

from ._callback import JaxMagics
from ._check import CheckMagics
from ._record import RecordMagics
from ._watch import WatchMagics
