"""Marks, hints, explanations and item analysis."""
