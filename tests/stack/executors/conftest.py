import collections
import os

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

collect_ignore = ["mpi_elements.py"]  # a script, which nothing may import

# What host functions of these tests result; they are closures, so that they travel by value.
NUMBER = jax.ShapeDtypeStruct((), np.float32)


class Calls:
    """Counts by name, also of other processes: one byte a call, appended to a file."""

    def __init__(self, folder):
        self.folder = str(folder)

    def counter(self):
        folder = self.folder

        def count(name):
            import os

            path = os.path.join(folder, str(name))
            with open(path, "ab") as file:
                file.write(b".")
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
    """``elements(host, executor=...)``: `host` of every number of an array, jitted and vmapped."""

    def vmapped(host, **options):
        return jax.jit(
            jax.vmap(
                lambda x: jaxcb.pure_callback(host, NUMBER, x, vmap_method="sequential", **options)
            )
        )

    return vmapped


@pytest.fixture
def failure():
    """``failure(function, *args)``: what its host function raised, and the notes on it."""

    def raised(function, *args):
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(function(*args))
        original = jaxcb.host_error(caught.value) or caught.value
        return original, "\n".join([str(original), *getattr(original, "__notes__", ())])

    return raised
