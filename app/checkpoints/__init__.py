"""Checkpoints: files of weights and their tokenizers, and which slice of each stored tensor belongs to a head."""
