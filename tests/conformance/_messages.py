"""A message about a wrong result names the host function `oracle` and can be read at a glance."""


def assert_readable(error):
    """One paragraph that names the host function, and is no longer than one reads."""
    message = str(error)
    assert isinstance(error, (ValueError, TypeError)), repr(error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert len(message) < 500, message
    return message
