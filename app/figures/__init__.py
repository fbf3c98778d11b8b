"""The geometry of the drawings."""
