"""Say how many batch elements of masked calls needed the call."""

from __future__ import annotations

from ..summary import Mask, call_words, counted

PHRASES = {  # of the front end, too
    "masked": "{calls} for {needed} of {elements}",
    "masked_ahead": "calls for the elements whose mask is true",
}


def mask_words(calls: int, mask: Mask) -> str:
    """Return ``2 calls for 2 of 4 elements``."""
    if not mask.elements:
        return PHRASES["masked_ahead"]
    elements = counted(mask.elements, "element")
    return PHRASES["masked"].format(
        calls=call_words(calls), needed=f"{mask.needed:,}", elements=elements
    )
