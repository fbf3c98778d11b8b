"""Simulated students, classes, servers, and a browser, for tests, benchmarks and pictures; the app doesn't
import them.
"""
