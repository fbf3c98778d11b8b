"""The catalogue of misconceptions and the diagnosis of a whole sheet."""
