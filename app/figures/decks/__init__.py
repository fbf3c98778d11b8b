"""Draws tensors with three sides or four as decks of cards."""
