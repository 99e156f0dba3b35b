"""Check the form of an error about a wrong result."""


def assert_readable(error):
    """Assert that the message is one short line that names the host function `oracle`."""
    message = str(error)
    assert isinstance(error, (ValueError, TypeError)), repr(error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert len(message) < 500, message
    return message
