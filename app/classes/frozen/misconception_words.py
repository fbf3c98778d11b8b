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
from app.sheets.worksheet import OWN_MISCONCEPTION_PREFIX, OwnMisconception
from app.store import Activity, Content, Store


@dataclass(frozen=True)
class MisconceptionWords:
    """The names and explanations of misconceptions by their keys.

    `own` finds a teacher's own misconception; None for a key that is none, or that no sheet has.
    """

    wording: Wording
    own: Callable[[str], OwnMisconception | None]

    def name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; its key if it is known no longer."""
        words = self.own(key) or self.wording.misconceptions.get(key)
        return words.name if words else key

    def explanation(self, key: str) -> str:
        """The text that explains a misconception; '' for one that is not known, or known no longer."""
        words = self.own(key) or self.wording.misconceptions.get(key)
        return words.explanation if words else ""


def misconception_words(
    library: Library, store: Store, activity: Activity, wording: Wording | None = None
) -> MisconceptionWords:
    """The words of an activity as its newest revision has them; `wording` is that of another one of its revisions.

    A teacher's own misconception that the newest revision lacks is looked up in what attempts were marked by: corrected
    definitions and earlier revisions, the newest first.
    """

    @cache
    def own(key: str) -> OwnMisconception | None:
        if not key.startswith(OWN_MISCONCEPTION_PREFIX):
            return None
        sheets = (worksheet_of(item) for content in _contents(store, activity) for item in content.items)
        return next((own for sheet in sheets for own in sheet.misconceptions if own.key == key), None)

    return MisconceptionWords(wording or library_of(library, store, activity.content).wording, own)


def _contents(store: Store, activity: Activity) -> Iterator[Content]:
    """What attempts of an activity are or were marked by, the newest first; only the newest revision is at hand."""
    yield activity.content
    yield from reversed(store.regrades.definitions(activity.id).values())
    yield from reversed(store.activities.revisions(activity).values())
