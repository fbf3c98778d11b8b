"""Simulated students, classes and servers for tests and benchmarks; nothing in the app imports it."""
