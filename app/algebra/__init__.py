"""Sizes in symbols (`expression`), the parser of typed arithmetic (`parser`), and numbers as text (`number_text`)."""
