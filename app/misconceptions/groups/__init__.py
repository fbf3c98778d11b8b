"""The misconceptions, one module per group."""
