"""The parametrisations over every way of every flavor, JAX's own among them."""

import pytest

from .conftest import DEBUG, IO, PURE


def _named(**tables):
    return {
        f"{flavor} {name}": way for flavor, table in tables.items() for name, way in table.items()
    }


RETURNING = _named(pure=PURE, io=IO)
EVERY = RETURNING | _named(debug=DEBUG)
returning_kinds = pytest.mark.parametrize("way", RETURNING.values(), ids=RETURNING)
our_returning_kinds = pytest.mark.parametrize(
    "way",
    [way for name, way in RETURNING.items() if not name.endswith("jax")],
    ids=[name for name in RETURNING if not name.endswith("jax")],
)


def call_of(name, host, result, **options):
    """``way(host, result)``, but a debug callback returns nothing and none is declared."""
    way = EVERY[name]
    return way(host, **options) if name.startswith("debug") else way(host, result, **options)
