"""Multimodal files: where the text part is a type that has a table, the file's own table only points to it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from app.models.table import FamilyTable
from tools.derive import reading
from tools.derive.deriving import NoRule
from tools.derive.library import ModelClass, Values, read
from tools.derive.sampling import by_layer
from tools.derive.words import CHOICES
from tools.derive.writing import Table

CONFIGS = 8
# Types that the text part may have instead, if the whole file reads any.
OTHERS = ("llama", "qwen2", "mistral")
Tensor = tuple[str, int, str, int, tuple[int, ...]]


def pointer(model_class: ModelClass, families: Path) -> Table | None:
    """The table that points to the text part's, or None if that doesn't describe all of the text part's tensors."""
    table = _table_of(model_class.text_type, families)
    if table is None or not _describes(table, model_class, model_class.text_type):
        return None
    others = [other for other in OTHERS if other != model_class.text_type]
    is_open = any(
        (of_other := _table_of(other, families)) and _describes(of_other, model_class, other) for other in others
    )
    rows = [
        ("field", str(model_class.part)),
        ("table", model_class.text_type),
        ("others", "yes" if is_open else "no"),
        ("tie_word_embeddings", *ties(model_class, _random_config(table, random.Random(0)))),  # noqa: S311 - no secret
        *(("absent", name, json.dumps(value)) for name, value in _defaults(table, model_class).items()),
    ]
    return {f"class  {model_class.name}": [], "text part": rows}


def _table_of(model_type: str, families: Path) -> FamilyTable | None:
    file = families / model_type
    tables = reading.parse(file.read_text()) if file.exists() else ()
    return tables[0] if tables and not tables[0].text_part else None


def _describes(table: FamilyTable, model_class: ModelClass, text_type: str) -> bool:
    """Whether the text part has exactly the tensors of the table in random configs, and in an empty one."""
    rng = random.Random(1)  # noqa: S311 - no secret
    own, model_class.text_type = model_class.text_type, text_type
    try:
        defaults = _defaults(table, model_class) if own == text_type else {}
        configs = [_random_config(table, rng) for _ in range(CONFIGS)] + ([{}] if own == text_type else [])
        compared = 0
        for config in configs:
            try:
                model = model_class.build(config)
            except Exception:  # noqa: S112 - classes raise anything
                continue
            try:
                values = reading.values_of(table, {**defaults, **config})
            except reading.UNREADABLE:
                continue
            values["tie_word_embeddings"] = model_class.is_tied(model)
            predicted = [(*place, *what) for place, what in reading.tensors(table, values).items()]
            actual = [
                (stack, i, name, *what)
                for stack, layers in by_layer(model_class.tensors(model)).items()
                for i, layer in layers.items()
                for name, what in layer.items()
                if 0 not in what[1]
            ]
            if sorted(map(_without_prefix, predicted)) != sorted(map(_without_prefix, actual)):
                return False
            compared += 1
        return compared > CONFIGS // 2
    finally:
        model_class.text_type = own


def _without_prefix(tensor: Tensor) -> Tensor:
    stack, i, name, copies, shape = tensor
    if stack:
        return stack.rpartition(".")[2], i, name, copies, shape
    return "", i, ".".join(name.split(".")[-2:]), copies, shape


def _random_config(table: FamilyTable, rng: random.Random) -> Values:
    """Random numbers for the sizes with a symbol, and random switches; the rest stays at the defaults."""
    config, chosen = Values(), dict[str, int]()
    for symbol, size in sorted(table.sizes.items(), key=lambda item: item[0] != "H"):
        if symbol in CHOICES and size.fields:
            choices = [n for n in CHOICES[symbol] if symbol != "G" or chosen.get("H", 12) % n == 0]
            config[size.fields[0]] = chosen[symbol] = rng.choice(choices)
    for name in table.switches:
        config[name] = rng.random() < 0.5
    return {**config, "tie_word_embeddings": rng.random() < 0.5, "pad_token_id": 0}


def _defaults(table: FamilyTable, model_class: ModelClass) -> Values:
    """What the whole file fills in for fields that its text part leaves out, where that isn't the table's default."""
    try:
        part = read(model_class.config({}), str(model_class.part))
    except Exception:
        return {}
    stated, found = reading.values_of(table, {}), Values()
    sizes = {key: size.fields[0] for key, size in table.sizes.items() if size.fields}
    for key, name in [*sizes.items(), *((name, name) for name in (*table.switches, *table.numbers))]:
        value = read(part, name)
        if name == "tie_word_embeddings" or not isinstance(value, int | float):
            continue
        if _value(stated, key) != value or _stays(name, key, value, table, model_class):
            found[name] = value
    return found


def _stays(name: str, key: str, value: float, table: FamilyTable, model_class: ModelClass) -> bool:
    """Whether the whole file fills in this value where the table's rule follows other sizes."""
    line = table.sizes.get(key)
    if line is None or line.absent is None or line.absent.text.isdigit():
        return False
    others = {other: x for other, x in _random_config(table, random.Random(2)).items() if other != name}  # noqa: S311 - no secret
    try:
        part = read(model_class.config(others), str(model_class.part))
        return bool(read(part, name) == value != _value(reading.values_of(table, others), key))
    except Exception:  # classes raise anything
        return False


def _value(values: Mapping[str, Any], key: str) -> Any:
    """None if the table asks for it."""
    try:
        return values[key]
    except reading.UNREADABLE:
        return None


def ties(model_class: ModelClass, base: Values) -> tuple[str, ...]:
    """What tie_word_embeddings of the whole file and of its text part decide together."""
    tied, rows = list[bool](), list[tuple[Any, Any]]()
    for outer in (None, True, False):
        for part in (None, True, False):
            try:
                model = model_class.build(base, outer_tie=outer, part_tie=part)
            except Exception:  # noqa: S112 - classes raise anything
                continue
            if model_class.head(model) is None:
                return ("never",)
            rows.append((outer, part))
            tied.append(model_class.is_tied(model))
    if rows and (all(tied) or not any(tied)):
        return ("always",) if all(tied) else ("never",)
    for outer_absent, part_absent in product((True, False), repeat=2):
        stated = [(outer_absent if o is None else o, part_absent if p is None else p) for o, p in rows]
        if rows and tied == [o for o, _ in stated]:
            return ("outer", json.dumps(outer_absent))
        if rows and tied == [p for _, p in stated]:
            return ("part", json.dumps(part_absent))
        if rows and tied == [o or p for o, p in stated]:
            return ("either", json.dumps(outer_absent), json.dumps(part_absent))
        if rows and tied == [o and p for o, p in stated]:
            return ("both", json.dumps(outer_absent), json.dumps(part_absent))
    raise NoRule("field", "tie_word_embeddings")
