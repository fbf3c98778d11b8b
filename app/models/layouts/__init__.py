"""The layouts: each family's parameter tensors, in its layers and outside them, under transformers' names."""
