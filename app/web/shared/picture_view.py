"""What a head's picture shows: its stages, the row being read, the layer's other heads; and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import HTTPException, Response
from markupsafe import Markup

from app.exchange.spreadsheet import csv_lines
from app.figures.head_readout import (
    RowReadout,
    alt_text,
    cell_texts,
    first_token_sentences,
    key_labels,
    number_rows,
    query_labels,
    read_row,
    reduction_sentence,
    row_queries,
    row_sentence,
    stage_sentences,
    stage_title,
    telling_row,
)
from app.figures.heat_map import HeadNumbers, StageKey, draw_stage, heat_png, heat_svg, small_svg, stages
from app.translation import gettext as _
from app.web.shared.forms import whole_number

if TYPE_CHECKING:
    from app.forward.real_head import RealHead

MAX_CSV_LINES = 300_000


@dataclass(frozen=True)
class StagePicture:
    """One stage of the picture. `data` is JSON for js/picture.js: the places and numbers of its cells."""

    key: StageKey
    title: str
    sentences: tuple[str, ...]
    svg: Markup
    data: str


@dataclass(frozen=True)
class HeadCard:
    head: int
    svg: Markup


@dataclass(frozen=True)
class PictureRow:
    """Everything that templates/heads/_picture_row.html shows: the query that is read, and the column of its cell.

    key, query: of the picture that it belongs to, as in PictureView.
    """

    key: str
    query: Mapping[str, str]
    row: RowReadout
    column: int


@dataclass(frozen=True)
class PictureView:
    """Everything that templates/heads/_picture.html shows of the head that ran under `key`.

    query: what the picture's links keep. data: JSON for js/picture.js: the labels of rows and columns, and each row's
    sentence. row: the query being read, and `column` its cell. rows: the query that each row of the picture leads to,
    with its sentence. table: the numbers of the last stage, by row; "" is masked. cards: the heads of this layer.
    """

    key: str
    name: str
    layer: int
    head: int
    query: Mapping[str, str]
    stages: tuple[StagePicture, ...]
    data: str
    row: RowReadout
    column: int
    rows: tuple[tuple[int, str], ...]
    first_token: tuple[str, ...]
    reduction: str
    key_labels: tuple[str, ...]
    table: tuple[tuple[str, tuple[str, ...]], ...]
    is_decode: bool
    cards: tuple[HeadCard, ...]


def picture_view(real_head: RealHead, key: str, query: Mapping[str, str]) -> PictureView:
    numbers = head_numbers(real_head, is_decode="show_decode" in query)
    keys = stages(numbers)
    rest: tuple[StageKey, ...] = ("rest",) if len(numbers.key_tokens) > 1 else ()
    labels, columns = query_labels(numbers), key_labels(numbers)
    queries = row_queries(numbers)
    sentences = tuple(row_sentence(numbers, each) for each in queries)
    row, column = read_cell(numbers, query)
    return PictureView(
        key=key,
        name=numbers.name,
        layer=real_head.layer,
        head=real_head.head,
        query=_kept(query),
        stages=tuple(_stage_picture(numbers, stage) for stage in (*keys, *rest)),
        data=json.dumps({"rows": labels, "columns": columns, "queries": queries, "sentences": sentences}),
        row=row,
        column=column,
        rows=tuple(zip(queries, sentences, strict=True)),
        first_token=first_token_sentences(numbers),
        reduction=reduction_sentence(numbers),
        key_labels=columns,
        table=tuple(zip(labels, cell_texts(numbers, keys[-1]), strict=True)),
        is_decode="show_decode" in query,
        cards=_cards(real_head),
    )


def picture_row(real_head: RealHead, key: str, query: Mapping[str, str]) -> PictureRow:
    """Only the row that `picture_view` reads for the same query."""
    row, column = read_cell(head_numbers(real_head, is_decode="show_decode" in query), query)
    return PictureRow(key, _kept(query), row, column)


def read_cell(numbers: HeadNumbers, query: Mapping[str, str]) -> tuple[RowReadout, int]:
    """The readout of the address's `row` (by default a telling one), and the column of its `cell`, all from 0."""
    row, key = telling_row(numbers)
    if (named := whole_number(query.get("row", ""), len(numbers.queries) - 1)) is not None:
        row, key = named, int(numbers.weights[named].argmax())
    if (named := whole_number(query.get("cell", ""), len(numbers.keys) - 1)) is not None:
        key = named
    readout = read_row(numbers, row)
    return readout, max(cell.column for cell in readout.cells if cell.first_key <= key)


def head_numbers(real_head: RealHead, *, is_decode: bool = False) -> HeadNumbers:
    """The numbers behind a head's pictures, and its name with weights, layer and head."""
    texts = tuple(token.text for token in real_head.tokens)
    name = _("{checkpoint}, layer {layer}, head {head}")
    architecture = real_head.architecture
    numbers = HeadNumbers(
        name=name.format(checkpoint=real_head.checkpoint, layer=real_head.layer, head=real_head.head),
        queries=real_head.arrays["queries"],
        keys=real_head.arrays["keys"],
        scores=real_head.arrays["scores"],
        weights=real_head.arrays["weights"],
        mask=real_head.mask,
        query_tokens=texts,
        key_tokens=texts,
        scale=architecture.score_scale,
        softcap=architecture.score_softcap,
        has_bias=bool(architecture.position_bias),
    )
    return numbers.last_row() if is_decode else numbers


def picture_file(real_head: RealHead, kind: str, stage: str, *, is_decode: bool = False) -> Response:
    """A stage of the picture as "png" or "svg", or the numbers of all stages as "csv", to download."""
    numbers = head_numbers(real_head, is_decode=is_decode)
    known: dict[str, StageKey] = {each: each for each in (*stages(numbers), "rest")}
    if stage not in known or (stage == "rest" and len(numbers.keys) < 2):
        raise HTTPException(404)
    drawn = known[stage]
    content: bytes | str
    match kind:
        case "png":
            content, media_type = heat_png(draw_stage(numbers, drawn)), "image/png"
        case "svg":
            svg = heat_svg(draw_stage(numbers, drawn), alt_text(numbers, drawn), drawn, for_file=True)
            content, media_type = svg, "image/svg+xml"
        case "csv":
            if numbers.scores.size > MAX_CSV_LINES:
                raise HTTPException(422, _("This head has too many numbers for a table: download the npz file."))
            content, media_type = "".join(csv_lines(number_rows(numbers))), "text/csv; charset=utf-8"
        case _:
            raise HTTPException(404)
    name = f"layer-{real_head.layer}-head-{real_head.head}{'' if kind == 'csv' else f'-{stage}'}.{kind}"
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _kept(query: Mapping[str, str]) -> Mapping[str, str]:
    return {name: query[name] for name in ("show_decode",) if name in query}


def _stage_picture(numbers: HeadNumbers, stage: StageKey) -> StagePicture:
    drawing = draw_stage(numbers, stage)
    plot = drawing.plot
    data = {
        "left": plot.x / drawing.width,
        "top": plot.y / drawing.height,
        "width": plot.width / drawing.width,
        "height": plot.height / drawing.height,
        "cells": ["|".join(line) for line in cell_texts(numbers, stage)],  # lists of texts would be twice as long
        "first": 1 if stage == "rest" else 0,
    }
    return StagePicture(
        stage,
        stage_title(stage),
        stage_sentences(numbers, stage),
        Markup(heat_svg(drawing, alt_text(numbers, stage), stage)),  # noqa: S704 - it has escaped all
        json.dumps(data),
    )


def _cards(real_head: RealHead) -> tuple[HeadCard, ...]:
    return tuple(
        HeadCard(head, Markup(small_svg(weights)))  # noqa: S704 - numbers alone
        for head, weights in enumerate(real_head.layer_weights)
    )
