"""."""

from ._callback import JaxMagics as JaxMagics
from ._check import CheckMagics as CheckMagics
from ._record import RecordMagics as RecordMagics
