"""What templates may show is what their page classes hold, each with a sentence; and every setting is explained."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from annotated_doc import Doc
from jinja2 import meta

import app.web
from app.settings import PROJECT, Settings
from app.web.account.account_link_page import AccountLinkPage
from app.web.account.forgotten_password_page import ForgottenPasswordPage
from app.web.account.password_page import PasswordPage
from app.web.account.sign_in_page import SignInPage
from app.web.exhibits.heads_page import HeadsPage
from app.web.exhibits.see_page import SeePage
from app.web.exhibits.slide_page import SlidePage
from app.web.exhibits.token_page import TokenPage
from app.web.handouts.handout_page import HandoutPage
from app.web.handouts.mark_paper_page import MarkPaperPage
from app.web.handouts.print_job_page import PrintJobPage
from app.web.materials.copy_page import CopyPage
from app.web.materials.import_page import ImportPage
from app.web.materials.material_list_page import MaterialListPage
from app.web.materials.material_page import MaterialPage, SharedMaterialPage
from app.web.materials.ticket_editor_page import TicketEditorPage
from app.web.materials.worksheet_editor_view import WorksheetEditorPage
from app.web.materials.worksheet_preview import PreviewFragment
from app.web.models.model_list_page import ModelsPage
from app.web.models.model_page import ModelPage
from app.web.practice.glossary_page import GlossaryPage
from app.web.practice.landing_page import LandingPage
from app.web.practice.practice_map_page import PracticeMapPage
from app.web.practice.sheet_page import SheetPage
from app.web.runs.run_page import AgreementFragment, NoRunPage, RunPage
from app.web.shared.errors import ErrorPage
from app.web.shared.sheet_form import FiguresFragment, SavedFragment
from app.web.shared.templating import template_environment
from app.web.student.activity_page import ClosingFragment, OverviewPage
from app.web.student.class_sheet_view import ClassSheetPage
from app.web.student.exit_ticket_view import TicketPage
from app.web.student.join_page import JoinedPage, JoinPage, NamePage, ResumePage, SuggestedNamesPage
from app.web.student.leave_page import LeavePage
from app.web.student.my_work_page import MyWorkPage
from app.web.teacher.activity_form_page import ActivityFormPage
from app.web.teacher.activity_page import ActivityPage
from app.web.teacher.activity_preview_page import ActivityPreviewPage
from app.web.teacher.course_list_page import CourseListPage
from app.web.teacher.course_page import CoursePage
from app.web.teacher.course_practice_page import CoursePracticePage
from app.web.teacher.delete_activity_page import DeleteActivityPage
from app.web.teacher.enter_paper_page import EnterPaperPage
from app.web.teacher.exit_tickets_page import ExitTicketFragment, ExitTicketsPage
from app.web.teacher.export_page import ExportPage
from app.web.teacher.gradebook_page import GradebookPage
from app.web.teacher.live_page import LivePage
from app.web.teacher.present_page import PresentPage
from app.web.teacher.print_class_page import PrintClassPage
from app.web.teacher.regrade_page import RegradePage
from app.web.teacher.results_page import ResultsPage, WrittenAnswersPage
from app.web.teacher.roster_import_page import RosterImportPage
from app.web.teacher.roster_student_page import RosterStudentPage
from app.web.teacher.student_results_page import StudentResultsPage
from app.web.teacher.summary_page import SummaryPage

# Which page a template is given; what it includes or extends is checked with it.
PAGES: dict[str, type[Any]] = {
    "practice/sheet.html": SheetPage,
    "practice/_checked_sheet.html": SheetPage,
    "practice/landing.html": LandingPage,
    "practice/_trial.html": LandingPage,
    "practice/glossary.html": GlossaryPage,
    "exhibits/heads.html": HeadsPage,
    "exhibits/see.html": SeePage,
    "exhibits/slide.html": SlidePage,
    "exhibits/token.html": TokenPage,
    "practice/practice_map.html": PracticeMapPage,
    "shared/_figures.html": FiguresFragment,
    "shared/_saved.html": SavedFragment,
    "student/_closing.html": ClosingFragment,
    "teacher/roster_import.html": RosterImportPage,
    "teacher/roster_student.html": RosterStudentPage,
    "runs/run.html": RunPage,
    "runs/_run.html": RunPage,
    "runs/no_run.html": NoRunPage,
    "runs/_no_run.html": NoRunPage,
    "runs/_agreement.html": AgreementFragment,
    "models/model_list.html": ModelsPage,
    "models/model.html": ModelPage,
    "handouts/handout.html": HandoutPage,
    "handouts/_handout_pages.html": HandoutPage,
    "handouts/print_job.html": PrintJobPage,
    "handouts/_print_job.html": PrintJobPage,
    "handouts/mark_paper.html": MarkPaperPage,
    "teacher/enter_paper.html": EnterPaperPage,
    "teacher/print_class.html": PrintClassPage,
    "shared/error.html": ErrorPage,
    "account/password.html": PasswordPage,
    "teacher/delete_activity.html": DeleteActivityPage,
    "account/sign_in.html": SignInPage,
    "account/forgotten_password.html": ForgottenPasswordPage,
    "account/account_link.html": AccountLinkPage,
    "teacher/course_list.html": CourseListPage,
    "teacher/course.html": CoursePage,
    "teacher/activity_form.html": ActivityFormPage,
    "teacher/activity.html": ActivityPage,
    "teacher/activity_preview.html": ActivityPreviewPage,
    "materials/worksheet_editor.html": WorksheetEditorPage,
    "materials/_worksheet_preview.html": PreviewFragment,
    "materials/ticket_editor.html": TicketEditorPage,
    "student/join.html": JoinPage,
    "student/join_name.html": NamePage,
    "student/_join_names.html": SuggestedNamesPage,
    "student/joined.html": JoinedPage,
    "student/resume.html": ResumePage,
    "student/my_work.html": MyWorkPage,
    "student/leave.html": LeavePage,
    "student/activity.html": OverviewPage,
    "student/class_sheet.html": ClassSheetPage,
    "student/_class_sheet_form.html": ClassSheetPage,
    "student/exit_ticket.html": TicketPage,
    "teacher/export.html": ExportPage,
    "teacher/gradebook.html": GradebookPage,
    "teacher/live.html": LivePage,
    "teacher/_live.html": LivePage,
    "teacher/present.html": PresentPage,
    "teacher/_present.html": PresentPage,
    "teacher/results.html": ResultsPage,
    "teacher/written_answers.html": WrittenAnswersPage,
    "teacher/student_results.html": StudentResultsPage,
    "teacher/summary.html": SummaryPage,
    "teacher/exit_tickets.html": ExitTicketsPage,
    "teacher/_exit_tickets.html": ExitTicketsPage,
    "teacher/_exit_ticket.html": ExitTicketFragment,
    "teacher/regrade.html": RegradePage,
    "materials/copy.html": CopyPage,
    "materials/import.html": ImportPage,
    "teacher/course_practice.html": CoursePracticePage,
    "materials/material_list.html": MaterialListPage,
    "materials/material.html": MaterialPage,
    "materials/shared_material.html": SharedMaterialPage,
}


def parts_of(template: str) -> set[str]:
    """A template with all that it extends and includes."""
    environment = template_environment()
    found, waiting = set[str](), {template}
    while waiting:
        name = waiting.pop()
        found.add(name)
        tree = environment.parse((PROJECT / "templates" / name).read_text(encoding="utf-8"))
        waiting |= {other for other in meta.find_referenced_templates(tree) if other} - found
    return found


def variables(template: str) -> set[str]:
    """The names a template reads and does not make itself, with those of its parts."""
    environment = template_environment()
    texts = [(PROJECT / "templates" / name).read_text(encoding="utf-8") for name in parts_of(template)]
    undeclared = set().union(*(meta.find_undeclared_variables(environment.parse(text)) for text in texts))
    if any("{% set tab = " in text for text in texts):  # a page says which tab of its layout it is
        undeclared.discard("tab")
    if any("{% block with_frame scoped %}" in text for text in texts):  # an exhibit adds something to each frame
        undeclared -= {"frame", "loop"}
    return undeclared - set(environment.globals) - {"_trans"}  # a name of Jinja's own, for {% trans url=url_for(…) %}


def test_every_template_belongs_to_a_page() -> None:
    """No template is left over that no page shows."""
    shown = set().union(*(parts_of(template) for template in PAGES))
    assert shown == {str(path.relative_to(PROJECT / "templates")) for path in (PROJECT / "templates").rglob("*.html")}


@pytest.mark.parametrize(("template", "page"), PAGES.items(), ids=list(PAGES))
def test_a_template_shows_nothing_but_its_page(template: str, page: type[Any]) -> None:
    """Every undeclared variable of a template and its parts is a field of the page class."""
    assert variables(template) <= {field.name for field in fields(page)}


@pytest.mark.parametrize("page", dict.fromkeys(PAGES.values()), ids=lambda page: page.__name__)
def test_a_page_holds_nothing_that_no_template_shows(page: type[Any]) -> None:
    """Every field is read by one of the page's templates."""
    read = set().union(*(variables(template) for template, shown in PAGES.items() if shown is page))
    assert {field.name for field in fields(page)} <= read


def page_classes() -> list[type[Any]]:
    """Every class of a page module that is named a page, but for those that others extend."""
    modules = [importlib.import_module(module.name) for module in pkgutil.walk_packages(app.web.__path__, "app.web.")]
    named = {name: value for module in modules for name, value in vars(module).items()}
    pages = [value for name, value in named.items() if name.endswith(("Page", "Fragment")) and isinstance(value, type)]
    return [page for page in pages if not page.__subclasses__()]


def test_every_page_class_is_known_here() -> None:
    """A new page class joins the list above, so that its templates are checked."""
    assert set(page_classes()) == set(PAGES.values())


@pytest.mark.parametrize("page", page_classes(), ids=lambda page: page.__name__)
def test_every_field_of_a_page_has_a_sentence(page: type[Any]) -> None:
    """Each is Annotated with a Doc that ends in a full stop."""
    hints = get_type_hints(page, include_extras=True)
    for field in fields(page):
        notes = [note for note in get_args(hints[field.name])[1:] if isinstance(note, Doc)]
        assert get_origin(hints[field.name]) is not None
        assert len(notes) == 1, field.name
        assert notes[0].documentation.endswith("."), field.name


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_stands_in_the_docs(name: str) -> None:
    """A help sentence in the class; its environment variable and its default in the table of docs/installing.md."""
    field = Settings.model_fields[name]
    assert field.description
    assert field.description.endswith(".")
    variable = "DATABASE_URL" if name == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"
    default = "data" if name == "data_dir" else str(field.default)
    shown = default.lower() if isinstance(field.default, bool) else default
    page = (PROJECT / "docs" / "installing.md").read_text(encoding="utf-8")
    assert f"| `{variable}` | {f'`{shown}` ' if shown else ''}|" in page


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variable sets its field; without them the app serves 127.0.0.1:8000 from SQLite in the project's data."""
    for name in ("ATTENTION_SHAPES_HOST", "ATTENTION_SHAPES_PORT", "ATTENTION_SHAPES_DATA_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert (Settings().host, Settings().port, Settings().data_dir) == ("127.0.0.1", 8000, PROJECT / "data")
    assert Settings().database == f"sqlite:///{PROJECT / 'data' / 'attention-shapes.sqlite3'}"
    monkeypatch.setenv("ATTENTION_SHAPES_HOST", "0.0.0.0")  # noqa: S104 - read, not bound
    monkeypatch.setenv("ATTENTION_SHAPES_PORT", "81")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", "/somewhere")
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/d")
    assert (Settings().host, Settings().port, str(Settings().data_dir)) == ("0.0.0.0", 81, "/somewhere")  # noqa: S104
    assert Settings().database == "postgresql+psycopg://h/d"
