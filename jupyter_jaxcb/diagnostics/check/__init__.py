"""."""

from ._check import check as check
