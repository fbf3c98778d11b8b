"""For operators: machines, runners and their jobs."""
