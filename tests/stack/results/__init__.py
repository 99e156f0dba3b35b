"""Results of host functions: converted exactly, or refused with advice."""
