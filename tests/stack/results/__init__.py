"""What a host function may return: exactly right numbers, or an error that one can act upon."""
