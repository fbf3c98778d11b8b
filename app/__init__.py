"""Attention Shapes: worksheets on the shapes inside attention."""

__version__ = "0.1.0"
