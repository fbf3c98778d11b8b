"""The exit tickets of an activity: searched, starred, marked for following up, and hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import activity_results, activity_sheets, misconception_totals
from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.frozen.misconception_words import misconception_words
from app.classes.roster_lookup import names_with_numbers
from app.classes.ticket_groups import TicketGroup, choice_counts, group_answers, written_answers
from app.sheets.exit_tickets import TicketQuestion
from app.store import Activity, Store, TicketAnswer
from app.store.exit_tickets import SHOWN_FROM
from app.web.shared.forms import FormDep, cut_page
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import ServicesDep
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MUDDIEST = "muddiest"  # the question whose answers come first, next to the misconceptions
MAX_SEARCH_LENGTH = 200  # characters
TicketMark = Literal["starred", "follow_up", "hidden"]
TICKET_MARKS: dict[str, TicketMark] = {"starred": "starred", "follow_up": "follow_up", "hidden": "hidden"}


@dataclass(frozen=True)
class TicketFilter:
    """Which free texts to show: those with all words of `q` and with this mark or, without a mark, all not hidden."""

    q: str
    mark: TicketMark | None

    @property
    def query(self) -> dict[str, str]:
        return {name: value for name, value in (("q", self.q), ("show", self.mark)) if value}

    def matches(self, group: TicketGroup) -> bool:
        is_marked = getattr(group, self.mark) if self.mark else not group.hidden
        text = group.text.casefold()
        return is_marked and all(word in text for word in self.q.casefold().split())


def ticket_filter(q: str = "", show: str = "") -> TicketFilter:
    words = "".join(char for char in q[:MAX_SEARCH_LENGTH] if char.isprintable()).strip()
    return TicketFilter(words, TICKET_MARKS.get(show))


TicketFilterDep = Annotated[TicketFilter, Depends(ticket_filter)]


@router.get("/activities/{activity_id:int}/tickets")
def show_exit_tickets(
    services: ServicesDep, access: StaffActivity, wanted: TicketFilterDep, page: str = ""
) -> Response:
    """How often each choice was made, whatever the filter, and one page of the matching free texts."""
    activity, store = access.activity, services.store
    answers = store.exit_tickets.answers(activity)
    asked = _asked_questions(store, activity, answers)
    order = sorted(asked, key=lambda key: key != MUDDIEST)
    groups = sorted(
        filter(wanted.matches, group_answers(written_answers(asked, answers))),
        key=lambda group: order.index(group.question),
    )
    listed, pager = cut_page(groups, page)
    counts = Counter(answer.question for group in groups for answer in group.answers)
    choices = {key: choice_counts(asked[key], answers) for key in order}
    counts.update({key: chosen[0].of for key, chosen in choices.items() if chosen})
    words = misconception_words(services.library, store, activity)
    totals = misconception_totals(words, activity_results(services.library, store, activity))
    return render(
        "teacher/exit_tickets.html",
        access=access,
        sheets=activity_sheets(store, activity),
        questions=[asked[key] for key in order],
        choices=choices,
        counts=counts,
        groups=listed,
        names=names_with_numbers(store.roster.students(access.course)),
        misconceptions=[total for total in totals if total.at_last],
        wanted=wanted,
        total=len(answers),
        pager=pager,
        waiting=store.exit_tickets.waiting(activity),
        shown_from=SHOWN_FROM,
    )


@router.post("/activities/{activity_id:int}/tickets/{answer_id}")
def mark_exit_ticket(
    request: Request,
    services: ServicesDep,
    access: EditableActivity,
    wanted: TicketFilterDep,
    form: FormDep,
    answer_id: str,
) -> Response:
    """Set or remove the form's `mark`, a key of TICKET_MARKS, on an answer and all equal answers."""
    mark, is_set = TICKET_MARKS.get(form.raw("mark")), form.raw("on") == "yes"
    store, activity = services.store, access.activity
    answers = store.exit_tickets.answers(activity)
    groups = [group for group in group_answers(answers) if answer_id in {answer.id for answer in group.answers}]
    if mark is None or not groups:
        raise HTTPException(404)
    ids = [answer.id for answer in groups[0].answers]
    if not store.exit_tickets.mark(activity.id, *ids, **{mark: is_set}):
        raise HTTPException(404)  # deleted with their student since they were read
    if not is_htmx(request):
        return RedirectResponse(url_for("show_exit_tickets", activity_id=activity.id, **wanted.query), 303)
    changes: dict[str, Any] = {mark: is_set}
    marked = TicketGroup(tuple(replace(answer, **changes) for answer in groups[0].answers))
    has_names = any(answer.student_id for answer in marked.answers)
    names = names_with_numbers(store.roster.students(access.course)) if has_names else {}
    return render("teacher/_exit_ticket.html", access=access, group=marked, names=names, query=wanted.query)


def _asked_questions(store: Store, activity: Activity, answers: Iterable[TicketAnswer]) -> dict[str, TicketQuestion]:
    """The ticket's questions by key, and answered ones of earlier revisions."""
    ticket = frozen_ticket(activity.content)
    asked = {question.key: question for question in ticket.questions} if ticket else {}
    if removed := sorted({answer.question for answer in answers} - asked.keys()):
        tickets = filter(None, map(frozen_ticket, store.activities.revisions(activity).values()))
        earlier = {question.key: question for ticket in tickets for question in ticket.questions}
        asked |= {key: earlier.get(key, TicketQuestion(key=key, text=key)) for key in removed}
    return asked
