"""What every message about a wrong result, or a wrong declaration, has in common."""

import jupyter_jaxcb as jaxcb

ADVICE = (
    "Return ", "return ", "Declare ", "declare ", "Pass ", "pass ", "Annotate ", "Use ", "Write ",
    "Compute ", "Convert ", "Reshape ", "Name the", "pad them", "It gets ", "Call it ",
)  # fmt: skip


def message_of(error, *words):
    """The message: one paragraph that names `oracle` and advice, and has `words` in it."""
    message = str(jaxcb.host_error(error) or error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert 60 < len(message) < 520, message
    assert any(advice in message for advice in ADVICE), message
    assert [word for word in words if word not in message] == [], message
    return message
