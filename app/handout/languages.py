"""The language a name is set in, by its letters."""

from __future__ import annotations

import unicodedata

# The language a script is set in, so that shared characters get the right forms: by the names Unicode gives letters.
_LANGUAGES = (
    ("HIRAGANA", "ja", "jp"),
    ("KATAKANA", "ja", "jp"),
    ("HANGUL", "ko", "kr"),
    ("CJK", "zh", "cn"),
    ("ARABIC", "ar", None),
    ("HEBREW", "he", None),
    ("GREEK", "el", None),
    ("CYRILLIC", "ru", None),
)


def language_of(name: str) -> tuple[str, str | None]:
    """The language and region a name is set in, English where its letters tell of no other."""
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
    for script, language, region in _LANGUAGES:
        if script in scripts:
            return language, region
    return "en", None
