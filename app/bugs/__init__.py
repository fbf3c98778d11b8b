"""Short programs of attention with one bug, for the sheets "find the bug": what each does, why, and what repairs it."""
