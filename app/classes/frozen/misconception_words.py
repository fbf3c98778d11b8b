"""What the misconceptions of an activity are called, and how they are explained.

A teacher's own use the words in the frozen worksheets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from app.classes.frozen.frozen_library import worksheet_of
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.sheets.worksheet import AUTHOR_MISCONCEPTION_PREFIX, AuthorMisconception
from app.store import Activity, Content, Store


@dataclass(frozen=True)
class MisconceptionWords:
    """The names, questions and explanations of misconceptions by their keys.

    `author` finds a misconception written by a teacher, or None.
    """

    wording: Wording
    author: Callable[[str], AuthorMisconception | None]

    def name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; its key if it is no longer known."""
        words = self.author(key) or self.wording.misconceptions.get(key)
        return words.name if words else key

    def question(self, key: str) -> str:
        """The question that points to a misconception, or ''."""
        if author := self.author(key):
            return author.question
        words = self.wording.misconceptions.get(key)
        return words.nudge if words else ""

    def explanation(self, key: str) -> str:
        """The text that explains a misconception, or ''."""
        words = self.author(key) or self.wording.misconceptions.get(key)
        return words.explanation if words else ""


def misconception_words(library: Library, store: Store, activity: Activity) -> MisconceptionWords:
    """The names and explanations of an activity's misconceptions."""

    @cache
    def author(key: str) -> AuthorMisconception | None:
        if not key.startswith(AUTHOR_MISCONCEPTION_PREFIX):
            return None
        sheets = (worksheet_of(item) for content in _contents(store, activity) for item in content.items)
        return next((each for sheet in sheets for each in sheet.misconceptions if each.key == key), None)

    return MisconceptionWords(library.wording, author)


def _contents(store: Store, activity: Activity) -> Iterator[Content]:
    yield activity.content
    yield from reversed(store.regrades.definitions(activity.id).values())
    yield from reversed(store.activities.revisions(activity).values())
