"""Exhibits: a product, the heads of a layer and a decode step in frames, drawn from the sheets' tables."""
