"""Parametrizations that several test modules use: eager or jit, ordered or not."""

import jax
import pytest

eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
ordered_or_not = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
