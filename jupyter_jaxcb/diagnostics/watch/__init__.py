"""Watch the values inside compiled programs, and in Python loops. Read `_watch` first.

`_series`, `_first_bad`, `_text` and `_html` are what was seen, `_save` writes files of it, and
`_compare` compares two blocks.
"""

from ._compare import Comparison, Difference
from ._first_bad import Bad
from ._series import Row, Series
from ._text import brief, details, title
from ._watch import Watch, watch, watching
