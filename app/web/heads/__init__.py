"""Real heads: a typed sentence, the stored weights of one head of a checkpoint, and the shapes of every step."""
