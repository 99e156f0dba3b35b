"""Parametrizations over the makers of callbacks of every flavor, including JAX's own."""

import pytest

from .conftest import DEBUG, IO, PURE


def _named(**tables):
    return {
        f"{flavor} {name}": maker
        for flavor, table in tables.items()
        for name, maker in table.items()
    }


RETURNING = _named(pure=PURE, io=IO)
EVERY = RETURNING | _named(debug=DEBUG)
returning_kinds = pytest.mark.parametrize("maker", RETURNING.values(), ids=RETURNING)
our_returning_kinds = pytest.mark.parametrize(
    "maker",
    [maker for name, maker in RETURNING.items() if not name.endswith("jax")],
    ids=[name for name in RETURNING if not name.endswith("jax")],
)


def call_of(name, host, result, **options):
    """Return ``maker(host, result)``, without the result for a debug callback."""
    maker = EVERY[name]
    return maker(host, **options) if name.startswith("debug") else maker(host, result, **options)
