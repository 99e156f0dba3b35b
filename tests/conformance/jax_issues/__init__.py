"""Known issues of JAX's callbacks, one per module: what JAX's callbacks do and what ours do."""
