"""Draws tensors with three or four sides as decks of cards."""
