"""Which parameter tensors the layers and the whole of a model have, family by family, under their stored names."""
