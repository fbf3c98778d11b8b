"""The misconceptions, one module a group."""
