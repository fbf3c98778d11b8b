"""The README and docs/: links lead somewhere, commands exist, and every picture is there in light and in dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from app.cli.terminal import variable
from app.settings import PROJECT, Settings
from simulation.screenshots import MAX_BYTES, PICTURES, README, SCHEMES, SITE

PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")])
TEMPLATES = sorted((PROJECT / "templates").rglob("*.html"))
MAX_README_LINES = 150
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def _heading_ids(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        link = match[1] or match[2]
        if "://" in link:
            continue
        path, _hash, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in _heading_ids(target), link


def test_the_readme_is_short() -> None:
    """Whatever needs more room has a page in docs/, which the README links to."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_README_LINES
    assert [page.name for page in (PROJECT / "docs").glob("*.md") if f"docs/{page.name}" not in text] == []


def test_make_knows_every_target_that_the_docs_name() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(named) <= targets, page.name


def test_every_setting_that_the_docs_name_exists() -> None:
    settings = {variable(name) for name in Settings.model_fields}
    for page in PAGES:
        named = re.findall(r"ATTENTION_SHAPES_[A-Z_]+", page.read_text(encoding="utf-8"))
        assert set(named) <= settings, page.name


def test_pages_have_what_the_first_lesson_says_to_press() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in [*TEMPLATES, *(PROJECT / "worksheets").glob("*.toml")])
    named = re.findall(r"\*\*([^*]+)\*\*", (PROJECT / "docs/first-lesson.md").read_text(encoding="utf-8"))
    assert [name for name in named if " ".join(name.split()).rstrip(".") not in shown] == []


def test_every_picture_is_there_in_light_and_in_dark_and_small() -> None:
    taken = {picture.path(scheme) for picture in PICTURES for scheme in SCHEMES}
    assert taken == {*SITE.glob("*"), *README.glob("*")}
    assert all(path.stat().st_size <= MAX_BYTES for path in taken)
    for picture in PICTURES:
        for scheme in SCHEMES:
            with Image.open(picture.path(scheme)) as image:
                assert image.size == (picture.width * picture.density, picture.height * picture.density)


def test_pages_name_only_pictures_that_are_there() -> None:
    for page in [*PAGES, *TEMPLATES]:
        named = re.findall(r"pictures/([\w-]+)-(light|dark)\.webp", page.read_text(encoding="utf-8"))
        names = {name for name, _scheme in named}
        assert names <= {picture.name for picture in PICTURES}, page
        assert set(named) == {(name, scheme) for name in names for scheme in SCHEMES}, page
