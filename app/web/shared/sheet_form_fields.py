"""What a sheet's page shows of its form, in practice, in a class and in a preview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_doc import Doc

from app.figures.scale import ScaleName
from app.grading.explanations import Explanation
from app.grading.grade import Report
from app.grading.hints import Hint, HintLevel
from app.sheets.variant import Variant
from app.web.shared.sheet_form import Drawing
from app.web.shared.sheet_view import Note, QuestionView, RowView, StepsDone


@dataclass(frozen=True, kw_only=True)
class SheetFormPage:
    """Everything that templates/shared/_sheet.html shows; a page object adds what is around the form."""

    variant: Annotated[Variant | None, Doc("The sheet; none where the choice cannot be used.")] = None
    rows: Annotated[tuple[RowView, ...], Doc("The rows to fill in.")] = ()
    progress: Annotated[StepsDone | None, Doc("How many steps are done; None unless they come one at a time.")] = None
    questions: Annotated[tuple[QuestionView, ...], Doc("The open questions under the rows.")] = ()
    locked: Annotated[bool, Doc("Whether nothing can be typed into the boxes any more.")] = False
    drawing: Annotated[Drawing | None, Doc("What was typed, drawn; None where it is not shown.")] = None
    scale: Annotated[ScaleName, Doc("How lengths are drawn: by square root, or true.")] = "root"
    report: Annotated[Report | None, Doc("The marks of the last attempt; None where none may be seen.")] = None
    all_right: Annotated[bool, Doc("Whether every box is right, as it is typed, and may be seen to be.")] = False
    stale: Annotated[bool, Doc("Whether a box has changed since the last attempt, which has these marks.")] = False
    notes: Annotated[tuple[Note, ...], Doc("What is said below rows; the last of it in the bar, too.")] = ()
    hint: Annotated[Hint | None, Doc("The hint that was asked for.")] = None
    next_hint: Annotated[HintLevel | None, Doc("How far the next hint goes; None if there is none.")] = None
    explanation: Annotated[Explanation | None, Doc("The misconception behind an earlier attempt.")] = None
    example: Annotated[str, Doc("The address of a worked sheet like this one; empty where none may be seen.")] = ""
    another: Annotated[str, Doc("The address of an empty sheet like this one; empty until this one is done.")] = ""
    notice: Annotated[str, Doc("A sentence about the last press of a button, or nothing.")] = ""
    shows_score: Annotated[bool, Doc("Whether the number of right boxes is told.")] = False
    remark: Annotated[str, Doc("A sentence in place of the score, or nothing.")] = ""
    in_class: Annotated[bool, Doc("Whether it is the sheet of an activity, or of its preview.")] = False
    action: Annotated[str, Doc("Where the form is sent without script.")] = ""
    save_action: Annotated[str, Doc("Where it is saved.")] = ""
    run_action: Annotated[str, Doc("Where a run is started.")] = ""
    run_button: Annotated[str, Doc("What the button that runs the head says; nothing where it may not be run.")] = ""
    hidden_fields: Annotated[Mapping[str, str], Doc("What else the form sends, by name.")] = field(default_factory=dict)
    autosaves: Annotated[bool, Doc("Whether a box or an open question can be typed into, and is saved.")] = True
    autosave_key: Annotated[str, Doc("What this browser keeps unsaved answers under; nothing in a preview.")] = ""
    saved: Annotated[bool, Doc("Whether the server has a draft of this sheet.")] = False
    saved_state: Annotated[str, Doc("What the server has of this sheet (see saved_json).")] = ""
    focused: Annotated[str, Doc("The box that has the focus as the page opens; none but after a check or a hint.")] = ""
    sees: Annotated[bool, Doc("Whether products lead to their exhibit.")] = False
    slide_query: Annotated[Mapping[str, object], Doc("Where that exhibit leads back to.")] = field(default_factory=dict)
