"""What a host function may answer: exactly right numbers, or an error that one can act upon."""
