"""The options of callbacks: one row each, and the pairs that are refused.

`_options` has the rows. What checks the value of an option, and with which others it cannot be
combined, is registered by the folder that the option belongs to (`check`, `refuse`).
"""

from ._options import FLAVORS as FLAVORS
from ._options import Options as Options
from ._options import Row as Row
from ._options import rows as rows
from ._options import value_word as value_word
from ._refused import Refusal as Refusal
from ._refused import check as check
from ._refused import check_result as check_result
from ._refused import checked as checked
from ._refused import choices_of as choices_of
from ._refused import refusals as refusals
from ._refused import refuse as refuse
from ._refused import refuse_result as refuse_result
from ._refused import refused_results as refused_results
