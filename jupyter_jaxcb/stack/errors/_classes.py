"""The exceptions that end the host calls of an interrupted run."""


class EndedError(KeyboardInterrupt):
    """Raised in a host call that was running when its run was interrupted.

    A KeyboardInterrupt, so that ``except Exception`` does not swallow it. Code that later asks for
    a result of that run gets JAX's error with this exception as its cause.
    """

    def __init__(self, message: str = "its run was interrupted") -> None:
        super().__init__(message)


class NotCalledError(EndedError):
    """A host call was not made because its run was interrupted."""
