"""Numbers with a singular or plural noun."""


def counted(count: int, noun: str) -> str:
    """``1 run``, ``12,000 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def call_words(count: int) -> str:
    """``1 call``, ``12,000 calls``."""
    return counted(count, "call")
