"""The JSON API and the health check."""
