"""What students wrote to the open questions of an activity's sheets. Nobody grades it; teachers read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.classes.activity_results import SheetResults
from app.store import Activity, Attempt, Store, Student, questions_asked


@dataclass(frozen=True)
class WrittenText:
    """An answer to an open question, and its attempt."""

    text: str
    attempt: Attempt


@dataclass(frozen=True)
class OpenQuestionResults:
    """An open question of a sheet with each student's answers in order of time."""

    sheet_number: int  # in the activity's results, from 1
    name: str
    text: str
    texts: dict[int, tuple[WrittenText, ...]]  # by student

    @property
    def key(self) -> str:
        """The question's own key: 'why-k'."""
        return self.name.partition(".")[2]

    def of(self, student: Student) -> tuple[WrittenText, ...]:
        """A student's answers, without repetitions from one attempt to the next."""
        return self.texts.get(student.id, ())

    def last_of(self, student: Student) -> WrittenText | None:
        """A student's last answer; None without one, or if it was removed again."""
        last = self.of(student)[-1:]
        return last[0] if last and last[0].text else None

    def last_texts(self, students: Iterable[Student]) -> list[str]:
        """The last answers of these students in alphabetical order, which gives no names away."""
        texts = (last.text for student in students if (last := self.last_of(student)))
        return sorted(texts, key=str.casefold)


def open_questions(
    store: Store, activity: Activity, results: Sequence[SheetResults]
) -> tuple[OpenQuestionResults, ...]:
    """Every open question of these sheets, and every answered one of earlier revisions, sheet by sheet."""
    asked = questions_asked(store.activities.revisions(activity))
    questions = list[OpenQuestionResults]()
    for sheet in results:
        for (sheet_key, name), text in asked.items():
            if sheet_key == sheet.item.sheet_key:
                texts = {student: _texts(attempts, name) for student, attempts in sheet.attempts.items()}
                written = {student: of_student for student, of_student in texts.items() if of_student}
                if written or name in sheet.item.questions:
                    questions.append(OpenQuestionResults(sheet.number, name, text, written))
    return tuple(questions)


def _texts(attempts: Sequence[Attempt], name: str) -> tuple[WrittenText, ...]:
    written = list[WrittenText]()
    for attempt in attempts:
        text = attempt.answers[name].strip() if name in attempt.answers else None
        if text is not None and text != (written[-1].text if written else ""):
            written.append(WrittenText(text, attempt))
    return tuple(written)
