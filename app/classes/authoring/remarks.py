"""The checker's remarks on a worksheet while it is written, and what would fix it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.sheets.library import Library
from app.sheets.lint import Finding, findings_on
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.translation import gettext as _


@dataclass(frozen=True)
class Proposal:
    """A change that a button would make: the button's text, and its action for `arrange`."""

    text: str
    action: str


@dataclass(frozen=True)
class Remark:
    """A sentence about a worksheet. It `matters` if the author can do something about it, such as with the
    proposals.
    """

    message: str
    proposals: tuple[Proposal, ...] = ()
    matters: bool = True


def remarks_on(library: Library, worksheet: Worksheet) -> tuple[Remark, ...]:
    """The checker's remarks on a worksheet with its default model and length."""
    variant = Variant(worksheet, library.model(worksheet.model), worksheet.tokens, library.wording)
    names = {
        **{key: words.name for key, words in library.wording.misconceptions.items()},
        **{authored.key: authored.name for authored in worksheet.misconceptions},
    }
    remarks = [
        Remark(
            _with_names(finding.message, names),
            tuple(_proposals(variant, finding)),
            finding.fixable or finding.kind == "must-author",  # its author can describe it otherwise
        )
        for finding in findings_on(variant)
    ]
    return _proposed_once(sorted(remarks, key=lambda remark: not remark.matters))


def _proposed_once(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    later = [{proposal for other in remarks[at + 1 :] for proposal in other.proposals} for at in range(len(remarks))]
    return tuple(
        replace(remark, proposals=tuple(each for each in remark.proposals if each not in after))
        for remark, after in zip(remarks, later, strict=True)
    )


def _proposals(variant: Variant, finding: Finding) -> Iterator[Proposal]:
    sheet = variant.worksheet
    if (tokens := finding.proposed_tokens) and not sheet.sentence:  # their number of tokens is given
        yield Proposal(_("{tokens} tokens would tell them apart").format(tokens=tokens), f"set tokens {tokens}")
    elif finding.kind in ("author", "must-author"):
        held = (each.name for each in sheet.misconceptions if f"“{each.name}”" in finding.message)
        if name := next(held, ""):
            yield Proposal(_("Remove “{name}”").format(name=name), f"forget {name}")


def _with_names(message: str, names: Mapping[str, str]) -> str:
    return re.sub("“([a-z0-9-]+)”", lambda match: f"“{names.get(match[1], match[1])}”", message)
