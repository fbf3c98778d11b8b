"""The topics, one module each with everything but its prose, and what they share."""
