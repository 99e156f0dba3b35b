"""Known troubles of JAX's own callbacks, one a module: shown with them, and absent with ours."""
