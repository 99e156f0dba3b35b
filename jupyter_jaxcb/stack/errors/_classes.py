"""What host calls of an interrupted run end with."""


class EndedError(KeyboardInterrupt):
    """Raised in a host call that was running when its run was interrupted.

    No failure of a program, so nothing takes it for one that it can go on after. Who asks later for
    a result of that run is not interrupted by it: JAX's error has it as its cause.
    """

    def __init__(self, message: str = "its run was interrupted") -> None:
        super().__init__(message)


class NotCalledError(EndedError):
    """A host call that was not made, as its run was interrupted."""
