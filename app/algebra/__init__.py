"""Sizes in symbols (`expression`), the parser of typed arithmetic (`parser`), numbers as text (`number_text`)."""
