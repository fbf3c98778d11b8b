"""When two people save the same thing, the second sees both versions, with everything still typed, and chooses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.translation import gettext as _
from app.web.shared.forms import FormReader


@dataclass(frozen=True)
class Difference:
    """A field whose newest version differs from the form."""

    label: str
    newest: str
    typed: str


@dataclass(frozen=True)
class Conflict:
    """A newer version than the one that a form was opened with; the form sends `version` to replace it."""

    version: str
    differences: tuple[Difference, ...]
    newest_page: str
    saved_by: str = ""


def version_of(*values: Any) -> str:
    """Twelve characters that change with a form's original values, where there are no numbered versions."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def version_to_replace(form: FormReader) -> str:
    """The version that the form was opened with, or the newer one that its sender has seen and replaces."""
    return form.raw("overwrite") or form.raw("version")


def may_save(form: FormReader, newest: str, typed: str) -> bool:
    """Whether nobody else has saved a version that the sender hasn't seen; an equal version is no conflict."""
    return newest in (version_to_replace(form), typed)


def differences(
    labels: Mapping[str, str], newest: Mapping[str, str], typed: Mapping[str, str]
) -> tuple[Difference, ...]:
    """The fields that differ, in the order of `labels`; labels and texts are by field name."""
    both = ((label, newest[name], typed[name]) for name, label in labels.items())
    return tuple(Difference(label, theirs, mine) for label, theirs, mine in both if theirs != mine)


def setting_differences(
    labels: Mapping[str, str], newest: Mapping[str, Any], typed: Mapping[str, Any]
) -> tuple[Difference, ...]:
    """The settings of a worksheet or an exit ticket that differ, in the order of `labels`."""
    return differences(labels, *({name: _told(each.get(name)) for name in labels} for each in (newest, typed)))


def _told(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, dict):
        value = [f"{name}: {_told(each)}" for name, each in value.items() if name != "key"]
    return ", ".join(_told(each) for each in value) if isinstance(value, list) else str(value)
