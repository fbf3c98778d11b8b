"""Running the head of a sheet."""
