"""Handouts for everybody, and paper answers marked."""
