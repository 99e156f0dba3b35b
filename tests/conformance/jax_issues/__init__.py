"""Known bugs of JAX's own callbacks, one in each module: reproduced with JAX's, absent in ours."""
