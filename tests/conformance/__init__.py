"""What every flavor promises. Most tests run with JAX's callbacks too."""
