"""The tables of tensors, what a sheet can be about, and the costs read off them."""
