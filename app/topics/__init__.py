"""The topics: one module for each, with all of it that is not prose; and what they have in common."""
