"""The names of the vmap methods, by how many host calls they make for a batch."""

from tests.interface import VMAP_METHODS

LOOPED = [name for name, method in VMAP_METHODS.items() if method.looped]  # one for each element
TOGETHER = [name for name in VMAP_METHODS if name not in LOOPED]  # one
