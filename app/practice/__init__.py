"""Which sheet comes next, from a record of results."""
