"""Signing in, account links and passwords of teachers."""
