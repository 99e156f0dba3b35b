"""Each topic of JAX's page about external callbacks, and of its docstrings, has a place here."""

import pytest

# The topic, the page and heading that treats it, and words that the section must contain.
TOPICS = {
    "which flavor for what": ("guide/which-callback", "How the flavors behave", "may be elided"),
    "print at run time": ("guide/which-callback", "Which callback do I need?", "debug_print"),
    "a result declared": ("guide/define-a-callback", "Declare the result", "ShapeDtypeStruct"),
    "vmap methods": ("guide/define-a-callback", "Choose a vmap method", "legacy_vectorized"),
    "a pure call may be removed": (
        "guide/why-not-called", "Why wasn't my callback called?", "dead-code",
    ),
    "a pure call may be repeated": (
        "guide/called-too-often", "Why was my callback called so often?", "jax.checkpoint",
    ),
    "pure under grad": ("guide/differentiate", "Write a rule", "custom_jvp"),
    "io under grad": ("guide/which-callback", "How the flavors behave", "stop_gradient"),
    "random numbers": ("cookbook", "Draw random numbers from NumPy", "ordered"),
    "order of calls": ("guide/which-callback", "How the flavors behave", "program order"),
    "raising in a pure callback": ("guide/debug-errors", "Catch the exception", "never raises"),
    "arrays of JAX in a host function": (
        "guide/troubleshoot-hangs", "JAX inside a host function", "deadlock",
    ),
    "costs of transfers": ("faq", "What does a callback cost on a GPU?", "copies"),
    "sharding": ("guide/several-devices", "Callbacks over several devices", "shard_map"),
    "buffers": ("guide/define-a-callback", "Write into a buffer", "buffer_callback"),
    "a debugger": ("faq", "Can I stop in a debugger?", "breakpoint"),
    "host_callback": ("guide/migrate-from-host-callback", "Migrate from host_callback", "id_tap"),
    "exceptions": ("guide/debug-errors", "Debug a failing host function", "traceback"),
    "export": ("faq", "Can I export a function with `jax.export`?", "compiled"),
}  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS)
def test_topic_of_jax_is_treated(topic, pages):
    page, heading, words = TOPICS[topic]
    assert words in section(pages[f"{page}.md"], heading)


def section(text, heading):
    """Return the text below a heading, up to the next one of its level."""
    (mark,) = [line.split(" ")[0] for line in text.splitlines() if line.lstrip("# ") == heading]
    return text.split(f"{mark} {heading}\n", 1)[1].split(f"\n{mark} ", 1)[0]
