"""A config.json read into one frozen Architecture, and the parameters it has."""
