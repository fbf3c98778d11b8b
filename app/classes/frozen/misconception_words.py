"""What the misconceptions of an activity are called, and how they are explained.

Those of the catalogue have the words of the activity's wording; a teacher's own have hers, from the worksheets that
the activity froze.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from app.classes.frozen.frozen_library import library_of, worksheet_of
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.sheets.worksheet import AUTHOR_MISCONCEPTION_PREFIX, AuthorMisconception
from app.store import Activity, Content, Store


@dataclass(frozen=True)
class MisconceptionWords:
    """The names and explanations of misconceptions by their keys. `author` finds a misconception that a teacher
    described; None for a key that is none, or that no sheet has.
    """

    wording: Wording
    author: Callable[[str], AuthorMisconception | None]

    def name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; its key if it is known no longer."""
        words = self.author(key) or self.wording.misconceptions.get(key)
        return words.name if words else key

    def explanation(self, key: str) -> str:
        """The text that explains a misconception; '' for one that is not known, or known no longer."""
        words = self.author(key) or self.wording.misconceptions.get(key)
        return words.explanation if words else ""


def misconception_words(
    library: Library, store: Store, activity: Activity, wording: Wording | None = None
) -> MisconceptionWords:
    """The names and explanations of an activity's misconceptions, in `wording` or, if None, the newest revision's."""

    @cache
    def author(key: str) -> AuthorMisconception | None:
        if not key.startswith(AUTHOR_MISCONCEPTION_PREFIX):
            return None
        sheets = (worksheet_of(item) for content in _contents(store, activity) for item in content.items)
        return next((each for sheet in sheets for each in sheet.misconceptions if each.key == key), None)

    return MisconceptionWords(wording or library_of(library, store, activity.content).wording, author)


def _contents(store: Store, activity: Activity) -> Iterator[Content]:
    yield activity.content
    yield from reversed(store.regrades.definitions(activity.id).values())
    yield from reversed(store.activities.revisions(activity).values())
