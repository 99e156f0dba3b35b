"""Random programs run once with JAX's callbacks and once with ours."""
