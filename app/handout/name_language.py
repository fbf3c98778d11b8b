"""The language that a name is typeset in, judged by its letters, so that characters shared by languages look right."""

from __future__ import annotations

import unicodedata

# The first word of the Unicode names of a script's letters, then language and region for Typst. Kana come first,
# because Japanese names mix them with CJK characters.
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
    """The language and region to typeset a name in, by the scripts of its letters.

    Example:
        language_of("田中さくら")  # ("ja", "jp")
        language_of("王小明")      # ("zh", "cn")
        language_of("Kim Lee")    # ("en", None)
    """
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
    for script, language, region in _LANGUAGES:
        if script in scripts:
            return language, region
    return "en", None
