"""What the misconceptions of an activity are called, and how they are explained.

Those of the catalogue have the words of the activity's wording; a teacher's own have hers, from the worksheets that
the activity froze.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from app.classes.frozen.frozen_library import library_of, worksheet_of
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.sheets.worksheet import OWN_MISCONCEPTION_PREFIX, OwnMisconception, Worksheet
from app.store import Activity, Content, Store


@dataclass(frozen=True)
class MisconceptionWords:
    """The names and explanations of misconceptions by their keys.

    `contents` are what has a teacher's own ones: the first with a key decides. They are only read for such a key.
    """

    wording: Wording
    contents: Callable[[], Iterable[Content]]

    def name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; its key where it has no name."""
        own = self.own(key)
        return own.name if own else self.wording.misconception_name(key)

    def explanation(self, key: str) -> str:
        """The text that explains a misconception; '' for one that is not known, or known no longer."""
        if own := self.own(key):
            return own.explanation
        try:
            return self.wording.misconception(key, "explanation")
        except KeyError:
            return ""

    def own(self, key: str) -> OwnMisconception | None:
        """The teacher's own misconception of that key; None if it is none, or no sheet has it."""
        if not key.startswith(OWN_MISCONCEPTION_PREFIX):
            return None
        sheets: Iterable[Worksheet] = (worksheet_of(item) for content in self.contents() for item in content.items)
        return next((own for sheet in sheets for own in sheet.misconceptions if own.key == key), None)


def misconception_words(
    library: Library, store: Store, activity: Activity, wording: Wording | None = None
) -> MisconceptionWords:
    """The words of an activity as its newest revision has them; `wording` is that of another one of its revisions.

    A teacher's own misconception that this lacks is looked up in what attempts were marked by: corrected definitions
    and earlier revisions, the newest first.
    """

    @cache
    def earlier() -> tuple[Content, ...]:
        definitions, revisions = store.regrades.definitions(activity.id), store.activities.revisions(activity)
        return (*reversed(definitions.values()), *reversed(revisions.values()))

    def contents() -> Iterable[Content]:
        yield activity.content
        yield from earlier()

    return MisconceptionWords(wording or library_of(library, store, activity.content).wording, contents)
