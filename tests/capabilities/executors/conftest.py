import collections
import os

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

# The result of host functions in these tests, which are closures and so are pickled by value.
NUMBER = jax.ShapeDtypeStruct((), np.float32)


class Calls:
    """Count calls by name across processes, by appending one byte per call to a file."""

    def __init__(self, folder):
        self.folder = str(folder)

    def counter(self):
        folder = self.folder

        def count(name):
            import os

            path = os.path.join(folder, str(name))
            # Not a file object: Ctrl-C ends workers anywhere, and Python warns of one left open.
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(file, b".")
            finally:
                os.close(file)
            return os.path.getsize(path)

        return count

    def counted(self):
        return collections.Counter(
            {name: os.path.getsize(os.path.join(self.folder, name))
             for name in os.listdir(self.folder)}
        )  # fmt: skip


@pytest.fixture
def calls(tmp_path):
    return Calls(tmp_path)


@pytest.fixture
def elements():
    """Return ``elements(host, executor=...)``, a jitted vmap of `host` over an array of numbers."""

    def vmapped(host, **options):
        return jax.jit(
            jax.vmap(
                lambda x: jaxcb.pure_callback(host, NUMBER, x, vmap_method="sequential", **options)
            )
        )

    return vmapped


@pytest.fixture
def failure():
    """Return ``failure(function, *args)``: the host exception, and its text with notes."""

    def raised(function, *args):
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(function(*args))
        original = jaxcb.host_error(caught.value) or caught.value
        return original, "\n".join([str(original), *getattr(original, "__notes__", ())])

    return raised
