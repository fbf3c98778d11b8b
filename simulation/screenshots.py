"""Takes the pictures of the page for teachers and the README: `make screenshots`.

Each shows a page of a real server with a sample course, once in light and once in dark.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page

from app.classes.sample_course import add_sample_course
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library
from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.browser import NoBrowserError, running_browser
from simulation.lesson import add_teacher
from simulation.server import Server, running_server

Scheme = Literal["light", "dark"]
Corner = tuple[int, int]  # x and y, in pixels of the page
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SITE, README = PROJECT / "static" / "pictures", PROJECT / "docs" / "pictures"
ADDRESS = "https://shapes.example.org"  # the server's address as shown in the pictures
MAX_BYTES = 60_000
UNHINTED = "--font-render-hinting=none"  # letters are spaced as designed
QUALITIES = (90, 80, 70, 60, 50)  # for WebP, tried in turn until a picture is small enough

# What is typed into the sheet of LLaMA 7B with 100 tokens, row by row.
HALF_FILLED = {
    "input": ("100", "4096"),
    "queries": ("100", "128"),
    "keys": ("100", "128"),
    "values": ("100", "128"),
    "scores": ("100", ""),
}
MISTAKEN = {  # every head as wide as the model
    "input": ("100", "4096"),
    **dict.fromkeys(("queries", "keys", "values"), ("100", "4096")),
    **dict.fromkeys(("scores", "weights"), ("100", "100")),
    "output": ("100", "4096"),
}
SENTENCE = "The cat sat on the mat because it was tired."
HEAD_TIMEOUT_MS = 120_000


@dataclass(frozen=True)
class Lesson:
    """What the pictures need from the server: the open activity of its sample course, and its teacher."""

    activity_id: int
    teacher_session: str


@dataclass(frozen=True)
class Picture:
    """One picture: a window's worth of a page, with `density` picture pixels per page pixel.

    What sticks to the edges of the window is therefore in the picture.
    """

    folder: Path
    name: str
    window: int
    width: int
    height: int
    density: float
    show: Callable[[Page, Lesson], Corner]

    def path(self, scheme: Scheme) -> Path:
        """Where it is stored, such as static/pictures/sheet-light.webp."""
        return self.folder / f"{self.name}-{scheme}.webp"


def _show_half_filled(page: Page, _lesson: Lesson) -> Corner:
    _fill(page, HALF_FILLED)
    page.focus('input[name="scores.columns"]')
    return _corner(page, "#boxes", margin=(28, 8))


def _show_mistake(page: Page, _lesson: Lesson) -> Corner:
    _fill(page, MISTAKEN)
    page.click("#check")
    page.locator(".result b").wait_for()
    return _corner(page, "#boxes", margin=(28, 8))


def _show_attention(page: Page, _lesson: Lesson) -> Corner:
    _open(page, "/heads")
    page.fill("#sentence", SENTENCE)
    page.fill("#layer", "13")
    page.fill("#head", "8")
    page.click(".head-form button:not([name], .unseen)")
    page.locator("#picture").wait_for(timeout=HEAD_TIMEOUT_MS)
    page.locator(".heat-grid .read-cell").wait_for()
    return _corner(page, "#picture", margin=(24, 16))


def _show_activity_form(page: Page, lesson: Lesson) -> Corner:
    _open(page, f"/activities/{lesson.activity_id}/edit")
    return _corner(page, "main h1", margin=(24, 16))


def _show_code(page: Page, lesson: Lesson) -> Corner:
    _open(page, f"/activities/{lesson.activity_id}/projector")
    page.click("#view-join")
    page.locator(".wall-join").wait_for()
    return 0, 0


def _show_phone(page: Page, _lesson: Lesson) -> Corner:
    page.context.clear_cookies()
    _fill(page, HALF_FILLED)
    return 0, _corner(page, "#boxes", margin=(0, 60))[1]


def _show_results(page: Page, lesson: Lesson) -> Corner:
    _open(page, f"/activities/{lesson.activity_id}/results")
    return _corner(page, "main h1", margin=(24, 16))


def _show_live(page: Page, lesson: Lesson) -> Corner:
    _open(page, f"/activities/{lesson.activity_id}/projector")
    page.click("#view-progress")
    page.locator(".wall-progress").wait_for()
    return 0, 0


def _show_handout(page: Page, _lesson: Lesson) -> Corner:
    _open(page, "/handout")
    page.locator(".sheets img").first.evaluate("image => image.decode()")
    return _corner(page, ".sheets", margin=(16, 0))


PICTURES = (
    Picture(README, "sheet", 1200, 1192, 600, 1.5, _show_half_filled),
    Picture(README, "mistake", 1200, 1192, 600, 1.25, _show_mistake),
    Picture(README, "attention", 1200, 572, 620, 1.5, _show_attention),
    Picture(README, "activity", 1000, 984, 640, 1, _show_activity_form),
    Picture(README, "code", 960, 960, 600, 1, _show_code),
    Picture(README, "phone", 360, 360, 640, 1.5, _show_phone),
    Picture(README, "results", 1000, 984, 640, 1, _show_results),
    Picture(SITE, "live", 960, 960, 640, 0.9375, _show_live),
    Picture(SITE, "handout", 600, 600, 400, 1.5, _show_handout),
)


def _open(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("html:not([data-arriving])").wait_for()


def _fill(page: Page, answers: Mapping[str, tuple[str, str]]) -> None:
    _open(page, "/sheet")
    for key, shape in answers.items():
        for axis, text in zip(("rows", "columns"), shape, strict=True):
            page.fill(f'input[name="{key}.{axis}"]', text)
    page.press('input[name="queries.rows"]', "Tab")
    page.locator("output.saved[data-state=saved]").wait_for(state="attached")  # a phone doesn’t show it
    page.wait_for_load_state("networkidle")


def _corner(page: Page, selector: str, margin: Corner) -> Corner:
    box = page.locator(selector).first.bounding_box()
    assert box
    return round(box["x"]) - margin[0], round(box["y"] + page.evaluate("scrollY")) - margin[1]


@contextmanager
def _taught_lesson(server: Server) -> Iterator[Lesson]:
    worksheets, store = PROJECT / "worksheets", Store(server.database, server.folder)
    teacher = add_teacher(store, "ada@example.org", "Ada")
    course = add_sample_course(load_library(worksheets), load_tickets(worksheets), store, teacher)
    [activity] = [activity for activity in store.activities.of_course(course) if activity.phase(store.now()) == "open"]
    yield Lesson(activity.id, store.people.open_session(teacher))
    store.close()


def take(picture: Picture, scheme: Scheme, browser: Browser, server: Server, lesson: Lesson) -> bytes:
    """One picture in one colour scheme, in a fresh profile, as WebP of at most MAX_BYTES if possible."""
    context = browser.new_context(
        base_url=server.url,
        color_scheme=scheme,
        reduced_motion="reduce",
        device_scale_factor=picture.density,
        viewport={"width": picture.window, "height": picture.height},
    )
    context.add_cookies([{"name": TEACHER_COOKIE, "value": lesson.teacher_session, "url": server.url}])
    page = context.new_page()
    x, y = picture.show(page, lesson)
    page.evaluate("y => scrollTo({top: y, behavior: 'instant'})", y)
    page.wait_for_load_state("networkidle")
    clip: FloatRect = {"x": x, "y": 0, "width": picture.width, "height": picture.height}
    png = page.screenshot(clip=clip, caret="initial")
    context.close()
    return _as_webp(png)


def _as_webp(png: bytes) -> bytes:
    image = Image.open(io.BytesIO(png)).convert("RGB")
    webp = _encode(image, quality=100, lossless=True)
    for quality in QUALITIES:
        if len(webp) <= MAX_BYTES:
            break
        webp = _encode(image, quality=quality, lossless=False)
    return webp


def _encode(image: Image.Image, *, quality: int, lossless: bool) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality, lossless=lossless, method=6)
    return buffer.getvalue()


def main(names: list[str]) -> None:
    os.environ["ATTENTION_SHAPES_ADDRESS"] = ADDRESS
    with running_server() as server, running_browser(UNHINTED) as browser, _taught_lesson(server) as lesson:
        for picture in PICTURES:
            for scheme in SCHEMES:
                if names and picture.name not in names:
                    continue
                path, webp = picture.path(scheme), take(picture, scheme, browser, server, lesson)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(webp)
                print(f"{path.relative_to(PROJECT)}  {len(webp) / 1000:.0f} kB")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NoBrowserError as error:
        sys.exit(str(error))
