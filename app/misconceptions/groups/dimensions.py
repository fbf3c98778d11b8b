"""Heads and the batch as dimensions of their own."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import KV_BY_HEAD, REPEATED, SPLIT_KV, all_sides, each, in_dimensions, on

_HEADS_FIRST_VIEW = {"split_queries": "H, N, d_h", "split_keys": "G, N, d_h", "split_values": "G, N, d_v"}
_TOKENS_FIRST = {"queries_by_head": "N, H, d_h", "keys_by_head": "N, G, d_h", "values_by_head": "N, G, d_v"}
_HEADS_TO_HEADS = {**each("N, H, H", "scores", "weights"), "context": "N, H, d_v"}
# The side that counts heads, with a batch: after the tokens, or right after the batch.
_QUERY_HEADS = ("split_queries.dim2", "context_by_token.dim2", *(
    f"{key}.dim1" for key in ("queries_by_head", *REPEATED, "scores", "weights", "context")
))  # fmt: skip
_KV_HEADS = (*(f"{key}.dim2" for key in SPLIT_KV), *(f"{key}.dim1" for key in KV_BY_HEAD))
_HEADS_AND_BATCH = {**each("B*H", *_QUERY_HEADS), **each("B*G", *_KV_HEADS)}


def _choices(**numbers: int) -> dict[str, str]:
    return {f"{row}.choice": str(number) for row, number in numbers.items()}


# Patterns are named by their places in app/topics/index_notation.py.
_ORDER_SWAPPED = _choices(scores_pattern=2, sums_pattern=2, grouped_pattern=2)
# The sizes of the first operand in its order.
_ORDER_IGNORED = {
    "queries_by_head.dim1": "N",
    "queries_by_head.dim2": "H",
    "keys_by_head.dim1": "N",
    "keys_by_head.dim2": "G",
    "context_by_token.dim1": "H",
    "context_by_token.dim2": "N",
}

GROUP = (
    Misconception(
        # hyunwoongko/transformer#15, harvardnlp/annotated-transformer#17
        "view-heads-first",
        66,
        in_dimensions(_HEADS_FIRST_VIEW, {**_HEADS_FIRST_VIEW, **_TOKENS_FIRST})
        # (j, i) is taken for query j of token i.
        | on("same-shapes", {"viewed_token.count": "i", "viewed_head.count": "j"}),
    ),
    Misconception(
        "wrong-axes-transposed",
        67,
        in_dimensions(
            {
                "queries_by_head": "N, d_h, H",
                "keys_by_head": "N, d_h, G",
                "values_by_head": "N, d_v, G",
                "context_by_token": "H, d_v, N",
            },
            {
                "queries_by_head": "d_h, H, N",
                "keys_by_head": "d_h, G, N",
                "values_by_head": "d_v, G, N",
                "context_by_token": "d_v, N, H",
            },
        ),
    ),
    Misconception(
        # harvardnlp/annotated-transformer#118 asks whether the transpose could be left out.
        "heads-attend-to-heads",
        68,
        in_dimensions({**_TOKENS_FIRST, **_HEADS_TO_HEADS}, _HEADS_TO_HEADS, each("N, H, H", "scores", "weights")),
    ),
    Misconception(
        # jsbaan/transformer-from-scratch#4
        "merged-without-transpose",
        69,
        in_dimensions(
            {"context_by_token": "H, N, d_v"}, {"context_by_token": "H, N, d_v", "joined_context": "H, N*d_v"}
        ),
    ),
    # In one dimension with the heads: 649453932/Chinese-Text-Classification-Pytorch#53. After the heads:
    # lsdefine/attention-is-all-you-need-keras#36, gazelle93/Transformer-Various-Positional-Encoding#1.
    Misconception(
        "batch-mixed-with-heads",
        71,
        on(
            "four-dimensions",
            _HEADS_AND_BATCH,
            {**_HEADS_AND_BATCH, **{f"{name.rpartition('.')[0]}.dim0": "1" for name in _HEADS_AND_BATCH}},
            {
                **{name.replace(".dim1", ".dim0"): "H" for name in _QUERY_HEADS if name.endswith(".dim1")},
                **{name.replace(".dim1", ".dim0"): "G" for name in _KV_HEADS if name.endswith(".dim1")},
                **{name: "B" for name in (*_QUERY_HEADS, *_KV_HEADS) if name.endswith(".dim1")},
            },
        ),
    ),
    # Seen in MOSA-Net-Cross-Domain#10 and Molecule-Generator#22.
    Misconception(
        "tokens-across-batch",
        73,
        on(
            "four-dimensions",
            each("B*N", "scores.dim2", "scores.dim3", "weights.dim2", "weights.dim3"),
            each("B*N", "scores.dim3", "weights.dim3"),
        ),
    ),
    # At the left instead of the right; or PyTorch, which puts dimensions of one in front, is trusted to put them
    # everywhere.
    Misconception(
        "misaligned-dimensions",
        150,
        on(
            "broadcasting",
            all_sides(
                padding_mask="B, N, 1, 1",
                causal_mask="N, N, 1, 1",
                positions_of_batch="N, d, 1",
                norm_scale="d, 1, 1",
                cosines_heads_first="N, d_rot, 1, 1",
                cosines_tokens_first="N, d_rot, 1, 1",
                grouped_keys="G, N, d_h, 1",
            ),
            all_sides(padding_mask="1, 1, B, N", cosines_tokens_first="1, 1, N, d_rot", grouped_keys="1, G, N, d_h"),
        ),
    ),
    Misconception(
        "repeated-by-hand",
        153,
        on(
            "broadcasting",
            all_sides(
                padding_mask="B, H, N, N",
                causal_mask="B, H, N, N",
                both_masks="B, H, N, N",
                positions_of_batch="B, N, d",
                norm_scale="B, N, d",
                cosines_heads_first="B, H, N, d_rot",
                cosines_tokens_first="B, N, H, d_rot",
                grouped_keys="G, H/G, N, d_h",
            ),
            # Along the heads only.
            all_sides(
                padding_mask="B, H, 1, N",
                causal_mask="1, H, N, N",
                both_masks="B, H, N, N",
                cosines_heads_first="1, H, N, d_rot",
                cosines_tokens_first="1, N, H, d_rot",
                grouped_keys="G, H/G, N, d_h",
            ),
        ),
    ),
    # Seen in hyunwoongko/transformer#40: unsqueeze(1).unsqueeze(3).
    Misconception("padding-hides-queries", 154, on("broadcasting", all_sides(padding_mask="B, 1, N, 1"))),
    # An elementwise operation is taken to keep the first or the second operand's shape.
    Misconception(
        "elementwise-keeps-shape",
        155,
        on(
            "broadcasting",
            all_sides(both_masks="B, 1, 1, N", grown="1, N"),
            all_sides(both_masks="1, 1, N, N", grown="N, 1"),
            all_sides(both_masks="B, 1, 1, N", grown="N, 1"),
        ),
    ),
    # Index notation.
    Misconception(
        "result-axes-swapped",
        170,
        on("index-notation", _ORDER_SWAPPED, _ORDER_IGNORED, {**_ORDER_SWAPPED, **_ORDER_IGNORED}),
    ),
    Misconception(
        "one-name-for-two-axes",
        171,
        on("index-notation", _choices(scores_pattern=3, sums_pattern=3, grouped_pattern=3)),
    ),
    Misconception(
        "batch-axis-dropped",
        174,
        on(
            "index-notation",
            _choices(projection_pattern=2, split_pattern=3, scores_pattern=4, sums_pattern=4, merge_pattern=3),
        ),
    ),
    Misconception(
        "shared-axes-summed",
        178,
        on(
            "index-notation",
            _choices(
                scores_pattern=5,
                sums_pattern=5,
                grouped_pattern=4,
                summed_in_scores=2,
                summed_in_own_scores=1,
                summed_in_context_by_token=2,
            ),
        ),
    ),
    Misconception(
        "group-order-swapped",
        179,
        on("index-notation", _choices(split_pattern=2, merge_pattern=2, repeat_pattern=2)),
    ),
)
