"""Exit tickets that came in: by question, searched, starred, marked for following up, hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode

from annotated_doc import Doc
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import MisconceptionTotal, activity_results, misconception_totals
from app.store import TicketAnswer
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MUDDIEST = "muddiest"  # the question whose answers stand beside what was believed
Which = Literal["", "starred", "follow_up", "hidden"]


@dataclass(frozen=True)
class Answer:
    """One answer, and whose it is where the ticket is no anonymous one."""

    kept: TicketAnswer
    name: str


@dataclass(frozen=True)
class Question:
    """One question with the answers that are shown of all that it got."""

    key: str
    text: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class TicketsPage:
    """Everything that templates/teacher/exit_tickets.html and its list show."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    muddiest: Annotated[Question | None, Doc("The muddiest points, if the ticket asks for them.")]
    questions: Annotated[tuple[Question, ...], Doc("The other questions.")]
    misconceptions: Annotated[tuple[MisconceptionTotal, ...], Doc("What was believed in the same session.")]
    q: Annotated[str, Doc("What is searched for, or nothing.")]
    which: Annotated[Which, Doc("Which answers are shown: all that are not hidden, or those with a mark.")]
    query: Annotated[str, Doc("Both, as they stand behind an address.")]
    came: Annotated[int, Doc("How many answers there are in all, hidden ones too.")]


@dataclass(frozen=True)
class Asked:
    """Which answers somebody wants to see."""

    access: permissions.ActivityAccess
    q: str
    which: Which

    @property
    def query(self) -> str:
        chosen = {"q": self.q, "show": self.which}
        return urlencode({name: value for name, value in chosen.items() if value})

    def wants(self, answer: TicketAnswer) -> bool:
        marks = {"": not answer.hidden, "starred": answer.starred, "follow_up": answer.follow_up}
        return marks.get(self.which, answer.hidden) and all(
            word in answer.text.casefold() for word in self.q.casefold().split()
        )


def asked(access: StaffActivity, q: str = "", show: str = "") -> Asked:
    known: dict[str, Which] = {"starred": "starred", "follow_up": "follow_up", "hidden": "hidden"}
    return Asked(access, "".join(char for char in q[:200] if char.isprintable()).strip(), known.get(show, ""))


Wanted = Annotated[Asked, Depends(asked)]


@router.get("/activities/{activity_id:int}/tickets")
def show_tickets(services: ServicesDep, wanted: Wanted) -> Response:
    """Every answer, or those that are searched for."""
    return render("teacher/exit_tickets.html", _page(services, wanted))


@router.post("/activities/{activity_id:int}/tickets/{answer_id}")
def mark_ticket(
    request: Request, services: ServicesDep, access: EditableActivity, wanted: Wanted, form: FormDep, answer_id: str
) -> Response:
    """Set or take away one mark of one answer."""
    mark, on = form.raw("mark"), form.raw("on") == "yes"
    known = mark in ("starred", "follow_up", "hidden") and answer_id.isascii() and answer_id.isalnum()
    if not known or not services.store.classwork.mark_ticket(access.activity.id, answer_id, **{mark: on}):
        raise HTTPException(404)
    if "hx-request" in request.headers:
        return render("teacher/_exit_tickets.html", _page(services, wanted))
    query = f"?{wanted.query}" if wanted.query else ""
    return RedirectResponse(f"/activities/{access.activity.id}/tickets{query}", 303)


def _page(services: Services, wanted: Asked) -> TicketsPage:
    activity = wanted.access.activity
    kept = services.store.classwork.tickets(activity.id)
    names = {student.id: student.name for student in services.store.courses.students(wanted.access.course)}
    texts = dict(activity.content.ticket.questions) if activity.content.ticket else {}
    texts |= {
        answer.question: answer.question for answer in kept if answer.question not in texts
    }  # of earlier versions
    shown = [Answer(one, names.get(one.student_id or 0, "")) for one in kept if wanted.wants(one)]
    shown.sort(key=lambda answer: not answer.kept.starred)
    questions = [
        Question(key, text, tuple(answer for answer in shown if answer.kept.question == key))
        for key, text in texts.items()
    ]
    muddiest = next((question for question in questions if question.key == MUDDIEST), None)
    others = tuple(question for question in questions if question is not muddiest)
    misconceptions = tuple(
        b
        for b in misconception_totals(
            services.library.wording, activity_results(services.library, services.store, activity)
        )
        if b.at_last
    )
    return TicketsPage(wanted.access, muddiest, others, misconceptions, wanted.q, wanted.which, wanted.query, len(kept))
