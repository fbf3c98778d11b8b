"""What the checker says of a worksheet while it is written, and what would mend it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from app.models.architecture import TokensError
from app.shapes.requirements import TopicError
from app.sheets.library import Library
from app.sheets.lint import Finding, findings_on
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.translation import gettext as _

FARTHEST = 60  # tokens away that another length may be
SHORTEST = 3  # tokens; with fewer, most sizes coincide


@dataclass(frozen=True)
class Proposal:
    """What a button would change: what it says, and its action, which `arrange` carries out."""

    text: str
    action: str


@dataclass(frozen=True)
class Remark:
    """A sentence about a worksheet. It `matters` where the author can do something about it, as by the proposals."""

    message: str
    proposals: tuple[Proposal, ...] = ()
    matters: bool = True


def remarks_on(library: Library, worksheet: Worksheet) -> tuple[Remark, ...]:
    """Everything the checker finds on a worksheet with its own model and length, what matters first.

    The library must hold the worksheet's models; it need not hold the worksheet.
    """
    found = _findings(library, worksheet)
    tokens = better_length(library, worksheet) if any(map(_depends_on_length, found)) else None
    names = {
        **library.wording.sections["misconception-names"],
        **{own.key: own.name for own in worksheet.misconceptions},
    }
    remarks = [
        Remark(_with_names(finding.message, names), tuple(_proposals(worksheet, finding, tokens)), finding.to_mend)
        for finding in found
    ]
    return _proposed_once(sorted(remarks, key=lambda remark: not remark.matters))


def _proposed_once(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """The remarks with each proposal only at the last one that it would mend."""
    later = [{proposal for other in remarks[at + 1 :] for proposal in other.proposals} for at in range(len(remarks))]
    return tuple(
        replace(remark, proposals=tuple(each for each in remark.proposals if each not in after))
        for remark, after in zip(remarks, later, strict=True)
    )


def better_length(library: Library, worksheet: Worksheet) -> int | None:
    """A number of tokens near the worksheet's own with which nothing is hidden or equal that need not be.

    The nearest multiple of ten, else the nearest; None if there is none near.
    """
    for tokens in _nearest(worksheet.tokens):
        try:
            found = _findings(library, replace(worksheet, tokens=tokens))
        except (TokensError, TopicError):
            continue
        if not any(map(_depends_on_length, found)):
            return tokens
    return None


@dataclass(frozen=True)
class _Structure:
    """A worksheet without its length and words, which decide nothing about what its model hides at any length."""

    worksheet: Worksheet
    config: str
    library: Library = field(compare=False)


def _findings(library: Library, worksheet: Worksheet) -> list[Finding]:
    """What the checker finds on a worksheet; raises TokensError and TopicError for a length that it cannot have."""
    model = library.model(worksheet.model)
    own = tuple(replace(each, name="", question="", explanation="") for each in worksheet.misconceptions)
    bare = replace(
        worksheet,
        title="",
        tokens=100,
        introduction="",
        own_assumptions="",
        footnote="",
        questions=(),
        misconceptions=own,
    )
    alone = _alone(_Structure(bare, model.config, library))
    alone.variant(worksheet.key, None, worksheet.tokens)
    return list(findings_on(alone, Variant(worksheet, model, worksheet.tokens, library.wording)))


@lru_cache(64)
def _alone(structure: _Structure) -> Library:
    """A library with that one worksheet, which remembers what the worksheet hides at any length.

    So the checker is quick while an author types.
    """
    library, worksheet = structure.library, structure.worksheet
    return Library({worksheet.key: worksheet}, library.models, library.wording)


def _depends_on_length(finding: Finding) -> bool:
    """Whether another number of tokens would mend it."""
    return finding.kind in ("hides", "coincides")


def _proposals(worksheet: Worksheet, finding: Finding, tokens: int | None) -> Iterator[Proposal]:
    """What would mend a finding; `tokens` are a better length, if there is one."""
    if _depends_on_length(finding) and tokens:
        yield Proposal(_("{tokens} tokens would tell them apart").format(tokens=tokens), f"set tokens {tokens}")
    elif finding.kind == "tolerates":
        yield Proposal(_("Allow no rounding"), "set tolerance 0")
    elif finding.kind == "wording":
        yield Proposal(_("Use the automatic title"), "set title")


def _with_names(message: str, names: Mapping[str, str]) -> str:
    """A sentence with the names of misconceptions in place of their keys."""
    return re.sub("“([a-z0-9-]+)”", lambda match: f"“{names.get(match[1], match[1])}”", message)


def _nearest(tokens: int) -> Iterator[int]:
    """The lengths around a length: multiples of ten first, nearer ones first, of two the shorter; not itself.

    >>> [*_nearest(32)][:4]
    [30, 40, 20, 50]
    """
    around = (tokens + step * sign for step in range(1, FARTHEST + 1) for sign in (-1, 1))
    possible = [length for length in around if length >= SHORTEST]
    yield from sorted(possible, key=lambda length: length % 10 != 0)
