"""Compare random programs run with JAX's callbacks and with ours."""
