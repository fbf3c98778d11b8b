"""Renders everything that people can see, for comparison before and after a change: `make snapshot`.

Later runs are compared with the first; remove .snapshot/before to start over.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from starlette.testclient import TestClient

from app.algebra.parser import Unreadable
from app.classes.sample_course import add_sample_course
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from app.grading.grade import grade
from app.grading.hints import next_hint_level, write_hint
from app.handout.document import handout_documents
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import plan_sheets
from app.main import create_app
from app.models.architecture import TokensError
from app.settings import PROJECT, Settings
from app.shapes.table import Blank
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import Library, load_library
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError
from app.store import Store
from app.topics.requirements import TopicError
from app.web.api import variant_json
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher

FOLDER = PROJECT / ".snapshot"
MODELS = ("qwen3-0.6b", "gpt2", "bert-base", "t5-small", "mixtral-8x7b", "deepseek-v2-lite")
NOW = datetime(2026, 9, 1, 10, tzinfo=UTC)
PAGES_PER_ADDRESS = 3  # counting addresses that differ only in numbers and query values
MAX_PAGES = 250  # per role
LINK = re.compile(r'<a [^>]*?href="(/[^"#]*)')
CHANGING = (re.compile(r"(/static/)[0-9a-f]{12}/"), re.compile(r"(seed=)\d+"))


def write_sheets(library: Library, folder: Path) -> None:
    """Every sheet for its own model and some others: its text, answers, hints and drawings, or why there is none."""
    for worksheet in library.worksheets.values():
        for model in dict.fromkeys((worksheet.model, *MODELS)):
            path = folder / worksheet.key / f"{model}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lines = _sheet_lines(library.variant(worksheet.key, model))
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            except (TokensError, TopicError, WorksheetError) as refusal:
                path.write_text(f"{refusal}\n", encoding="utf-8")


def _sheet_lines(variant: Variant) -> Iterator[str]:
    shown = {name: value for name, value in variant_json(variant).items() if name not in ("code", "worksheet")}
    yield json.dumps(shown, ensure_ascii=False, indent=1)
    right = {str(blank): _right_text(variant, blank) for blank in variant.blanks}
    for blank in variant.blanks:
        box, symbols = str(blank), variant.written_answer(blank, in_symbols=True)
        yield f"{box} = {variant.answer(blank)} = {symbols}"
        report, hint = grade(variant, {**right, box: "3"}), None
        while level := next_hint_level(variant, report, hint):
            hint = write_hint(variant, report, level)
            yield f"  {json.dumps(hint and hint.as_json(), ensure_ascii=False)}"
    read = {blank: variant.read(blank, right[str(blank)]) for blank in variant.blanks}
    answered = {blank: answer for blank, answer in read.items() if answer and not isinstance(answer, Unreadable)}
    for answers in ({}, answered):
        yield from (figure_svg(figure).replace("><", ">\n<") for figure in draw_figures(variant, answers))


def _right_text(variant: Variant, blank: Blank) -> str:
    in_symbols = variant.worksheet.answers == "letters"
    return variant.written_answer(blank) if in_symbols else variant.typed(blank, variant.answer(blank))


def write_handouts(library: Library, folder: Path) -> None:
    """What is typeset for every worksheet, sheet and key."""
    tickets = load_tickets(PROJECT / "worksheets")
    folder.mkdir(parents=True)
    for key in library.worksheets:
        options = HandoutOptions(worksheet=key, sheets=1, back="classic", key="with")
        documents = handout_documents(options, plan_sheets(library, options), tickets)
        text = json.dumps([make() for make in documents], ensure_ascii=False, indent=1, default=str)
        (folder / f"{key}.json").write_text(text + "\n", encoding="utf-8")


def write_pages(folder: Path) -> None:
    """The pages that a visitor, a student and a teacher of the sample course reach by links."""
    worksheets = PROJECT / "worksheets"
    with tempfile.TemporaryDirectory() as data:
        app = create_app(Settings(data_dir=Path(data)), clock=lambda: NOW)
        store: Store = app.state.services.store
        teacher = add_teacher(store, "ada@example.org", "Ada")
        course = add_sample_course(load_library(worksheets), load_tickets(worksheets), store, teacher)
        session = store.people.open_session(teacher)
        [activity] = [each for each in store.activities.of_course(course) if each.phase(NOW) == "open"]
        with TestClient(app) as client:
            _crawl(client, folder / "visitor", "/", "/practice")
            joined = client.post(f"/join/{activity.join_code}", data={"name": "Grace Hopper"})
            _crawl(client, folder / "student", joined.url.path)
            client.cookies.clear()
            client.cookies.set(TEACHER_COOKIE, session)
            _crawl(client, folder / "teacher", "/courses", "/worksheets", f"/activities/{activity.id}")


def _crawl(client: TestClient, folder: Path, *starts: str) -> None:
    folder.mkdir(parents=True)
    waiting, seen, kinds = deque(starts), set(starts), Counter[str]()
    while waiting and len(seen) < MAX_PAGES + len(waiting):
        address = waiting.popleft()
        kind = re.sub(r"\d+|(?<==)[^&]*", "0", address)
        kinds[kind] += 1
        if kinds[kind] > PAGES_PER_ADDRESS or re.search(r"\.(pdf|csv|zip|toml|xlsx|npz|ipynb|svg|png)\b", address):
            continue
        response = client.get(address.replace("&amp;", "&"), follow_redirects=False)
        text = response.text
        for changing in CHANGING:
            text = changing.sub(r"\1", text)
        name = re.sub(r"[^\w.=&?+-]+", "_", address.replace("&amp;", "&"))[:150]
        lines = re.sub(r"\s*\n\s*", "\n", text.replace("><", ">\n<"))
        (folder / f"{name}.html").write_text(f"{response.status_code}\n{lines}", encoding="utf-8")
        for link in LINK.findall(response.text):
            if link not in seen and "sign-out" not in link:
                seen.add(link)
                waiting.append(link)


def main() -> None:
    """Render everything, and show what differs from the first run."""
    random._urandom = partial(random.Random(0).randbytes)  # type: ignore[attr-defined]  # noqa: S311 - the same codes each time
    now, before = FOLDER / "now", FOLDER / "before"
    shutil.rmtree(now, ignore_errors=True)
    library = load_library(PROJECT / "worksheets")
    write_sheets(library, now / "sheets")
    write_handouts(library, now / "handouts")
    write_pages(now / "pages")
    if not before.exists():
        shutil.copytree(now, before)
        print(f"Kept in {before.relative_to(PROJECT)}, to compare the next with.")
        return
    compared = ["git", "diff", "--no-index", "--stat=160", "--", str(before), str(now)]
    print(subprocess.run(compared, check=False, capture_output=True, text=True).stdout or "Nothing differs.")


if __name__ == "__main__":
    main()
