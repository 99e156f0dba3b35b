"""Linear callbacks against dense matrices."""
