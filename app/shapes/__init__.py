"""The tables of tensors that sheets ask about, and the costs computed from them."""
