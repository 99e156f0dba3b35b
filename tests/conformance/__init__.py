"""What every sort of callback promises, tested one promise at a time, JAX's callbacks too."""
