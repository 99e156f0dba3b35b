"""The guarantees of every flavor, tested one by one, with JAX's callbacks too."""
