"""The layouts: which parameter tensors each family has in its layers and outside them, under transformers' names."""
