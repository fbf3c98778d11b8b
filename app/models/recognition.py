"""A config's family, the part of it that is read, and the family's flags that it sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.models.config_fields import Config, ConfigError, read_bool
from app.models.families import FAMILIES, FAMOUS
from app.models.families.family import Family
from app.models.families.multimodal import TEXT_PART_FAMILIES, TEXT_PART_FIELDS
from app.models.families.unsupported import REFUSED
from app.models.table import FamilyTable, TextPart, classes_by_type, family_file, table_names
from app.translation import gettext as _

MAX_NESTING = 3
READ_BY_ROWS = frozenset("""
albert bart bloom camembert codegen deberta deberta-v2 deepseek_v2 distilbert electra falcon gemma gemma2 gpt_bigcode
gpt_neo gpt_neox gpt_oss gptj internlm3 llama4_text mbart mistral mixtral modernbert t5 mt5 umt5 olmo3 olmoe opt phi
phi3 qwen3 qwen3_moe qwen2_moe whisper xglm roberta xlm-roberta starcoder2 stablelm olmo olmo2 cohere cohere2 granite
nemotron glm glm4 exaone4 smollm3 persimmon phimoe granitemoe openai-gpt mpt""".split())
# Words that belong to the task in a class name: if one remains after the suffix is cut, the class has another task.
# "GPT2DoubleHeadsModel" ends in "Model" but isn't a bare model.
_TASK_WORD = re.compile("For[A-Z]|With|Head|Encoder|Decoder")


@dataclass(frozen=True)
class Part:
    """The part of a file that describes a language model, and what is to be said about the choice.

    `table` is set if the file's own type has a table for its text part.
    """

    config: Config
    notes: tuple[str, ...] = ()
    table: FamilyTable | None = None
    model_type: str = ""

    @property
    def is_of_multimodal_file(self) -> bool:
        return bool(self.notes)


def find_text_part(config: Config) -> Part:
    """The part of a multimodal config that describes its language model, with a note that says so."""
    notes: tuple[str, ...] = ()
    for _level in range(MAX_NESTING):
        outer_type = config.get("model_type")
        rule, table = _text_part_rule(outer_type)
        names = (rule.field, *TEXT_PART_FIELDS) if rule else TEXT_PART_FIELDS
        field = next((name for name in names if isinstance(config.get(name), dict)), None)
        if field is None:
            # The first files of some types state the text model's sizes beside the other parts.
            if rule is None or table is None or _is_flat(config, table):
                return Part(config, notes)
            field = rule.field
        stated = config.get(field)
        part: dict[str, Any] = {**(stated if isinstance(stated, dict) else {}), **_older_form(config, field)}
        note = _('This file describes a multimodal model. Only its text part, "{field}", is read.')
        notes = (*notes, note.format(field=field))
        if rule and table:
            part = _by_rule(config, part, rule)
            if rule.tie == "outer" and "tie_word_embeddings" not in config and rule.tied[0]:
                note = _('"tie_word_embeddings" is not stated beside "{field}": transformers 5 then ties the LM head.')
                notes = (*notes, note.format(field=field))
            if not rule.table and not _is_known(part.get("model_type")):
                return Part(part, notes, table, str(outer_type))
        else:
            if "model_type" not in part and isinstance(outer_type, str) and outer_type in TEXT_PART_FAMILIES:
                part["model_type"] = TEXT_PART_FAMILIES[outer_type]
            if config.get("tie_word_embeddings") is not None:  # decides in transformers, whatever the part states
                part["tie_word_embeddings"] = config["tie_word_embeddings"]
        config = part
    raise ConfigError(_("This config.json nests text parts too deeply: paste the innermost one."))


def _is_flat(config: Config, table: FamilyTable) -> bool:
    fields = (name for line in table.sizes.values() for name in line.fields)
    return config.get("model_type") in FAMILIES or "hidden_size" in config or any(name in config for name in fields)


def _is_known(model_type: object) -> bool:
    return isinstance(model_type, str) and (model_type in FAMILIES or model_type in table_names())


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


def find_table(model_type: object, class_name: str) -> FamilyTable | None:
    """The table for a class of a type that no row in app/models/families has, or whose row lacks this class.

    Raises ConfigError for a type whose table says why it has none.
    """
    file = family_file(model_type) if isinstance(model_type, str) else None
    if file is None:
        return None
    if file.model_type in READ_BY_ROWS:
        return None
    if file.refused:
        raise ConfigError(_why_no_table(file.model_type, *file.refused))
    return file.table_of(class_name) or (file.tables[0] if file.tables else None)


def _why_no_table(model_type: str, kind: str, what: str) -> str:
    if kind == "source":
        sentence = _(
            "Models of type “{type}” bring their own code, and no table could be written for them, since {what}: "
            "choose another model."
        )
        return sentence.format(type=model_type, what=what)
    sentences = {
        "tensor": _(
            "The parameters of “{type}” follow rules that the app cannot express ({what}): choose another model."
        ),
        "field": _(
            "The parameters of “{type}” depend on “{what}” in a way that the app cannot express: choose another model."
        ),
        "attention": _("What the heads of “{type}” compute could not be observed: choose another model."),
        "class": _("Models of type “{type}” could not be built to look at their parameters: choose another model."),
    }
    # A tensor or field is named; what else went wrong is for developers.
    named = what.partition(": ")[0]
    sentence = sentences["class"] if " " in named else sentences.get(kind, sentences["tensor"])
    return sentence.format(type=model_type, what=named)


def find_family(config: Config) -> tuple[str, Family]:
    """The config's model_type and that family's row.

    Raises ConfigError if it states none, an unknown one, or one without N×N attention scores.
    """
    model_type = config.get("model_type")
    count = len(FAMILIES.keys() | table_names())
    known = _("{count} types are known, among them {names}.").format(count=count, names=", ".join(FAMOUS))
    if not isinstance(model_type, str):
        raise ConfigError(_('This config.json has no "model_type": add it.') + " " + known)
    if model_type in REFUSED:
        problem = _('Models of type "{type}" have {layers}, which the app does not know: choose another model.')
        raise ConfigError(problem.format(type=model_type, layers=_(REFUSED[model_type])))
    if model_type not in FAMILIES:
        problem = _('Models of type "{type}" are not supported.')
        if config.get("auto_map"):
            problem = _('Models of type "{type}" are not supported: the file brings its own code ("auto_map").')
        raise ConfigError(problem.format(type=model_type[:40]) + " " + known)
    return model_type, FAMILIES[model_type]


def known_types() -> Mapping[str, tuple[str, ...]]:
    """Every model_type that is read or refused for a reason, with the names of its classes in transformers."""
    of_tables, of_rows = classes_by_type(), {name: (family.model_class,) for name, family in FAMILIES.items()}
    names = {*of_tables, *of_rows, *REFUSED, *TEXT_PART_FAMILIES}
    return {name: of_tables.get(name, ()) or of_rows.get(name, ()) for name in names}


def text_type(model_type: str) -> str | None:
    """The model_type of a multimodal file's text part, "" if it's the outer type's own; None for other types."""
    rule, _table = _text_part_rule(model_type)
    return rule.table if rule else TEXT_PART_FAMILIES.get(model_type)


def why_refused(model_type: str) -> str:
    """The sentence that refuses all configs of a known type, or "" if some are read."""
    try:
        if find_table(model_type, "") is None:
            find_family({"model_type": model_type})
    except ConfigError as error:
        return str(error)
    return ""


def find_flags(config: Config, family: Family) -> set[str]:
    """The flags of the family's row that are set for this config.

    Raises ConfigError for a value that can't be read as yes or no.
    """
    flags = set[str]()
    for names, rule in family.flags.items():
        default = rule.default in flags if isinstance(rule.default, str) else rule.default
        field = next((field for field in rule.fields.split() if field in config), None)
        if field is None:
            holds = default
        elif config[field] is None:
            holds = default if rule.null is None else rule.null
        else:
            holds = rule.test(config[field], field) if rule.test else read_bool(config, field, default)
        if holds:
            flags.update(names.split())
    return flags


def task_suffix(class_name: str, suffixes: Iterable[str]) -> str | None:
    """The task part of a class name: the longest of `suffixes` that it ends in.

    Example: "LlamaForCausalLM" -> "ForCausalLM"; "GPT2DoubleHeadsModel" -> None, though it ends in "Model"
    """
    suffix = max((suffix for suffix in suffixes if class_name.endswith(suffix)), key=len, default="")
    return suffix or None if not _TASK_WORD.search(class_name.removesuffix(suffix)) else None
