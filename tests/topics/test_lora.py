"""LoRA has the shapes and counts of two linear layers in torch, and of their product with W_Q."""

from __future__ import annotations

import torch
from torch import nn

from app.grading.grade import grade
from app.shapes.table import Blank
from app.topics.lora import RANK
from app.topics.registry import sizes_for, topic_for
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY


def test_linear_layers_of_these_sizes_have_the_shapes_and_counts() -> None:
    for a in possible("lora"):
        table, sizes = topic_for("lora", a, TOKENS), sizes_for("lora", a, TOKENS, TOKENS)
        shapes, width = table.shapes(sizes), a.H * a.d_h
        frozen, down, up = (nn.Linear(*sides, bias=False) for sides in ((a.d, width), (a.d, RANK), (RANK, width)))
        frozen.requires_grad_(False)
        x = torch.randn(TOKENS, a.d)
        update = up(down(x))
        made = {
            "W_Q": frozen.weight.T, "lora_A": down.weight.T, "lora_B": up.weight.T, "input": x,
            "low_rank": down(x), "query_update": update, "queries": frozen(x) + update, "frozen_queries": frozen(x),
        }  # fmt: skip
        assert {key: tuple(tensor.shape) for key, tensor in made.items()} == shapes, a.name
        matrices = nn.ModuleList((frozen, down, up))
        trained = sum(matrix.numel() for matrix in matrices.parameters() if matrix.requires_grad)
        assert table.askable["trained"].size("count", sizes) == trained, a.name
        merged = x @ (made["W_Q"] + made["lora_A"] @ made["lora_B"])
        assert torch.allclose(merged, made["queries"], atol=1e-4), a.name


def test_llama_7b_trains_as_many_parameters_as_peft_prints() -> None:
    variant = LIBRARY.variant("lora-llama-7b")
    trained = variant.answer(Blank("trained", "count"))
    assert 2 * variant.architecture.L * trained == 4_194_304


def test_an_update_of_another_shape_is_no_residual_connection() -> None:
    variant = own_sheet(LIBRARY, "lora-llama-7b", model="qwen3-0.6b", rows=("frozen_queries", "query_update"))
    mismatch = grade(variant, {"frozen_queries.columns": "2048", "query_update.columns": "8"}).first_mismatch
    assert mismatch is not None
    assert "“Update of the queries” (8 columns) cannot be added" in mismatch.message
    assert "residual" not in mismatch.message


def test_the_trained_parameters_follow_from_the_matrices_as_typed() -> None:
    variant = LIBRARY.variant("lora-llama-7b", "qwen3-0.6b")
    wrong = {"lora_A.count": "16384", "lora_B.count": "32768", "trained.count": "49152"}
    marks = grade(variant, {**{str(b): str(variant.answer(b)) for b in variant.blanks}, **wrong}).marks
    assert str(marks[Blank("trained", "count")].kind) == "follows"
