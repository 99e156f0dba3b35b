"""What every message about a wrong answer, or a wrong declaration, has in common."""

import jupyter_jaxcb as jaxcb

REMEDIES = (
    "Return ", "return ", "Declare ", "declare ", "Give ", "give ", "Annotate ", "Use ", "Write ",
    "Leave ", "Let it ", "Compute ", "Name it", "say what", "pad them", "It gets ", "Call it ",
)  # fmt: skip


def message_of(error, *words):
    """The message: one paragraph that names `oracle` and a remedy, and has `words` in it."""
    message = str(jaxcb.host_error(error) or error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert 60 < len(message) < 520, message
    assert any(remedy in message for remedy in REMEDIES), message
    assert [word for word in words if word not in message] == [], message
    return message
