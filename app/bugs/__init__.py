"""Short attention programs with one bug each, for the "find the bug" sheets."""
