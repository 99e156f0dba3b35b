"""An error about a wrong result names the host function `oracle` and is short."""


def assert_readable(error):
    """Assert that the message is one short paragraph that names the host function."""
    message = str(error)
    assert isinstance(error, (ValueError, TypeError)), repr(error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert len(message) < 500, message
    return message
