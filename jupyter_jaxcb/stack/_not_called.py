"""What a host call that was not made answers with."""


class NotCalledError(KeyboardInterrupt):
    """A host call that was not made, as its run was interrupted.

    No failure of a program, so nothing takes it for one that it can go on after. Who asks later for
    a result of that run is not interrupted by it: JAX's error has it as its cause.
    """
