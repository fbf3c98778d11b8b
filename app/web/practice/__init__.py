"""The sheet page and practice, for visitors."""
