"""The error that people see."""


class Refusal(ValueError):
    """Something that can't be done: its text is a sentence for people, which says what to do instead."""

    status = 422  # of the HTTP response
    seconds = 0  # after which it may work
