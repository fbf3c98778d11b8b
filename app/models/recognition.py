"""The part of a config that is read, and the table of its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.models.architecture import ModelNote, model_note
from app.models.config_fields import Config, ConfigError
from app.models.table import FamilyTable, TextPart, classes_by_type, family_file, table_names
from app.translation import N_
from app.translation import gettext as _

MAX_NESTING = 3
# The fields whose object describes the language model; the first one in the config is read.
TEXT_PART_FIELDS = ("text_config", "language_config", "llm_config", "thinker_config")
# The types that a refusal names as examples.
FAMOUS = ("llama", "mistral", "qwen3", "gemma3_text", "phi3", "deepseek_v3", "gpt2", "bert", "t5", "vit")


@dataclass(frozen=True)
class Part:
    """The part of a file that describes a language model, and what is to be said about the choice.

    `table` is set if the file's own type has a table for its text part.
    """

    config: Config
    notes: tuple[ModelNote, ...] = ()
    table: FamilyTable | None = None
    model_type: str = ""

    @property
    def is_of_multimodal_file(self) -> bool:
        return bool(self.notes)


def find_text_part(config: Config) -> Part:
    """The part of a multimodal config that describes its language model, with a note that says so."""
    notes: tuple[ModelNote, ...] = ()
    for _level in range(MAX_NESTING):
        outer_type = config.get("model_type")
        rule, table = _text_part_rule(outer_type)
        names = (rule.field, *TEXT_PART_FIELDS) if rule else TEXT_PART_FIELDS
        field = next((name for name in names if isinstance(config.get(name), dict)), None)
        if field is None:
            # The first files of some types state the text model's sizes beside the other parts.
            if rule is None or table is None:
                return Part(config, notes)
            if _is_flat(config, table):
                return Part({**config, "model_type": _own_text_type(outer_type) or outer_type}, notes)
            field = rule.field
        stated = config.get(field)
        part: dict[str, Any] = {**(stated if isinstance(stated, dict) else {}), **_older_form(config, field)}
        note = N_('This file describes a multimodal model. Only its text part, "{field}", is read.')
        notes = (*notes, model_note(note, field=field))
        if rule and table:
            part = _by_rule(config, part, rule)
            if "model_type" not in part and (text_type := _own_text_type(outer_type)):
                part["model_type"] = text_type
            if rule.tie == "outer" and "tie_word_embeddings" not in config and rule.tied[0]:
                note = N_('"tie_word_embeddings" is not stated beside "{field}": transformers 5 then ties the LM head.')
                notes = (*notes, model_note(note, field=field))
            if not rule.table and (part.get("model_type") == rule.own_type or not _is_known(part.get("model_type"))):
                return Part(part, notes, table, str(outer_type))
        else:
            file = family_file(outer_type) if isinstance(outer_type, str) else None
            if file and file.refused and not _is_known(part.get("model_type")):
                raise ConfigError(_why_no_table(file.model_type, *file.refused))
            if config.get("tie_word_embeddings") is not None:  # decides in transformers, whatever the part states
                part["tie_word_embeddings"] = config["tie_word_embeddings"]
        config = part
    raise ConfigError(_("This config.json nests text parts too deeply: paste the innermost one."))


def _is_flat(config: Config, table: FamilyTable) -> bool:
    fields = (name for line in table.sizes.values() for name in line.fields)
    return "hidden_size" in config or any(name in config for name in fields)


def _own_text_type(outer_type: object) -> str:
    text_type = f"{outer_type}_text"
    return text_type if text_type in table_names() else ""


def _is_known(model_type: object) -> bool:
    return isinstance(model_type, str) and model_type in table_names()


def _text_part_rule(model_type: object) -> tuple[TextPart | None, FamilyTable | None]:
    file = family_file(model_type) if isinstance(model_type, str) else None
    table = file.tables[0] if file and file.tables else None
    return (table.text_part, table) if table else (None, None)


def _older_form(config: Config, field: str) -> dict[str, Any]:
    # CLIP's first files hold the text part twice; transformers lets "text_config_dict" win.
    older = config.get(f"{field}_dict")
    return older if isinstance(older, dict) else {}


def _by_rule(config: Config, part: dict[str, Any], rule: TextPart) -> dict[str, Any]:
    read = {**rule.absent, **part}
    if rule.table and (not rule.allows_others or "model_type" not in part):
        read["model_type"] = rule.table
    outside, inside = (
        stated if (stated := of.get("tie_word_embeddings")) is not None else absent
        for of, absent in zip((config, part), rule.tied, strict=True)
    )
    ties = {
        "outer": outside,
        "part": inside,
        "either": outside or inside,
        "both": outside and inside,
        "always": True,
        "never": False,
    }
    return {**read, "tie_word_embeddings": ties[rule.tie]}


def find_table(config: Config, class_name: str) -> FamilyTable:
    """The table for a class of the config's model_type, or for the type's most common class.

    Raises ConfigError for a type without a table, saying why if that is known.
    """
    model_type = config.get("model_type")
    count = len(table_names())
    known = _("{count} types are known, among them {names}.").format(count=count, names=", ".join(FAMOUS))
    if not isinstance(model_type, str):
        raise ConfigError(_('This config.json has no "model_type": add it.') + " " + known)
    file = family_file(model_type)
    if file and file.refused:
        raise ConfigError(_why_no_table(model_type, *file.refused))
    if file:
        return file.table_of(class_name) or file.tables[0]
    problem = _('Models of type "{type}" are not supported.')
    if config.get("auto_map"):
        problem = _('Models of type "{type}" are not supported: the file brings its own code ("auto_map").')
    raise ConfigError(problem.format(type=model_type[:40]) + " " + known)


def _why_no_table(model_type: str, kind: str, what: str) -> str:
    if kind == "source":
        sentence = _(
            "Models of type “{type}” bring their own code, and no table could be written for them, since {what}: "
            "choose another model."
        )
        return sentence.format(type=model_type, what=what)
    # A tensor, field or module is named; how it differed from its rule is for developers.
    named = what.partition(": ")[0]
    if " " in named:
        sentence = _("The shapes of “{type}” are not known, since {what}: choose another model.")
        if kind == "attention":
            sentence = _("What the heads of “{type}” compute is not known, since {what}: choose another model.")
        return sentence.format(type=model_type, what=named)
    sentences = {
        "field": _(
            "The parameters of “{type}” depend on “{what}” in a way that the app cannot express: choose another model."
        ),
        "attention": _(
            "What the heads of “{type}” compute follows rules that the app cannot express ({what}): choose another "
            "model."
        ),
    }
    of_tensors = _(
        "The parameters of “{type}” follow rules that the app cannot express ({what}): choose another model."
    )
    return sentences.get(kind, of_tensors).format(type=model_type, what=named)


def known_types() -> Mapping[str, tuple[str, ...]]:
    """Every model_type that is read or refused for a reason, with the names of its classes in transformers."""
    return classes_by_type()


def text_type(model_type: str) -> str | None:
    """The model_type of a multimodal file's text part, "" if it's the outer type's own; None for other types."""
    rule, _table = _text_part_rule(model_type)
    return rule.table if rule else None


def why_refused(model_type: str) -> str:
    """The sentence that refuses all configs of a known type, or "" if some are read."""
    try:
        find_table({"model_type": model_type}, "")
    except ConfigError as error:
        return str(error)
    return ""
