"""A check of the common form of errors about wrong results and declarations."""

import jupyter_jaxcb as jaxcb

ADVICE = (
    "Return ", "return ", "Declare ", "declare ", "Pass ", "pass ", "Annotate ", "Use ", "Write ",
    "Compute ", "Convert ", "Reshape ", "Name the", "pad them", "It gets ", "Call it ",
)  # fmt: skip


def message_of(error, *words):
    """Return the message, after checking that it is one short paragraph with advice and `words`."""
    message = str(jaxcb.host_error(error) or error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert 60 < len(message) < 520, message
    assert any(advice in message for advice in ADVICE), message
    assert [word for word in words if word not in message] == [], message
    return message
