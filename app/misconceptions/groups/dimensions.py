"""Heads and the batch as dimensions of their own."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
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


def in_patterns(**numbers: int) -> dict[str, tuple[Prediction, ...]]:
    """Predictions for index notation: which option of each question is chosen, or which of its patterns is written."""
    return on("index-notation", {f"{row}.choice": str(number) for row, number in numbers.items()})


GROUP = (
    # Heads and the batch as dimensions. Repeat in place of repeat_interleave (onnx/onnx#7274), and a reshape that mixes
    # tokens, give the right shapes with the wrong numbers in them: no sheet shows these.
    Misconception(
        # hyunwoongko/transformer#15, harvardnlp/annotated-transformer#17
        "view-heads-first",
        66,
        in_dimensions(_HEADS_FIRST_VIEW, {**_HEADS_FIRST_VIEW, **_TOKENS_FIRST}),
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
        # Whether the transpose could be left out is asked in harvardnlp/annotated-transformer#118.
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
    Misconception(
        # 649453932/Chinese-Text-Classification-Pytorch#53
        "batch-merged-with-heads",
        71,
        on(
            "four-dimensions",
            _HEADS_AND_BATCH,
            {**_HEADS_AND_BATCH, **{f"{name.rpartition('.')[0]}.dim0": "1" for name in _HEADS_AND_BATCH}},
        ),
    ),
    Misconception(
        # lsdefine/attention-is-all-you-need-keras#36, gazelle93/Transformer-Various-Positional-Encoding#1
        "heads-before-batch",
        72,
        on(
            "four-dimensions",
            {
                **{name.replace(".dim1", ".dim0"): "H" for name in _QUERY_HEADS if name.endswith(".dim1")},
                **{name.replace(".dim1", ".dim0"): "G" for name in _KV_HEADS if name.endswith(".dim1")},
                **{name: "B" for name in (*_QUERY_HEADS, *_KV_HEADS) if name.endswith(".dim1")},
            },
        ),
    ),
    Misconception(
        "tokens-across-batch",
        73,
        on(
            "four-dimensions",
            each("B*N", "scores.dim2", "scores.dim3", "weights.dim2", "weights.dim3"),
            each("B*N", "scores.dim3", "weights.dim3"),
        ),
    ),
    # A view with the heads first, taken for one that is followed by a transpose: (j, i) is query j of token i.
    Misconception(
        "view-taken-for-transpose",
        138,
        on("same-shapes", {"viewed_token.count": "i", "viewed_head.count": "j"}),
        lambda architecture: architecture.H > 1,
    ),
    # As if q had features before heads: entry f of the heads next to each other.
    Misconception("heads-interleaved", 139, on("same-shapes", {"view_column.count": "f*H + j"})),
    # The place in memory, of all tokens before it, too.
    Misconception("place-in-memory-for-column", 140, on("same-shapes", {"view_column.count": "i*H*d_h + j*d_h + f"})),
    Misconception(
        "aligned-from-the-left",
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
        ),
    ),
    # PyTorch puts dimensions of one in front, so it is trusted to put them everywhere.
    Misconception(
        "ones-only-in-front",
        151,
        on(
            "broadcasting",
            all_sides(padding_mask="1, 1, B, N", cosines_tokens_first="1, 1, N, d_rot", grouped_keys="1, G, N, d_h"),
        ),
    ),
    Misconception(
        "one-for-each-head",
        152,
        on(
            "broadcasting",
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
        ),
    ),
    # Seen in hyunwoongko/transformer#40: unsqueeze(1).unsqueeze(3).
    Misconception("padding-hides-queries", 154, on("broadcasting", all_sides(padding_mask="B, 1, N, 1"))),
    # Elementwise taken to keep a shape: that of the first operand, or of the second.
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
    # Index notation. Patterns are named by their places in app/topics/index_notation.py.
    Misconception("result-axes-swapped", 170, in_patterns(scores_pattern=2, sums_pattern=2, grouped_pattern=2)),
    Misconception("one-name-for-two-axes", 171, in_patterns(scores_pattern=3, sums_pattern=3, grouped_pattern=3)),
    # The transpose of Q · Kᵀ, written into the names.
    Misconception("second-operand-transposed", 172, in_patterns(scores_pattern=4, sums_pattern=4, grouped_pattern=4)),
    Misconception(
        "summed-axis-kept",
        173,
        in_patterns(
            projection_pattern=4,
            scores_pattern=5,
            sums_pattern=5,
            grouped_pattern=5,
            summed_in_scores=4,
            summed_in_own_scores=4,
            summed_in_context_by_token=5,
        ),
    ),
    Misconception(
        "batch-axis-dropped",
        174,
        in_patterns(projection_pattern=3, split_pattern=3, scores_pattern=6, sums_pattern=6, merge_pattern=3),
    ),
    Misconception(
        "tokens-summed",
        175,
        in_patterns(scores_pattern=8, sums_pattern=8, summed_in_own_scores=3, summed_in_context_by_token=1),
    ),
    Misconception("unshared-axes-summed", 176, in_patterns(summed_in_scores=1, summed_in_context_by_token=3)),
    # The sizes of the first operand in its order.
    Misconception(
        "result-order-ignored",
        177,
        on(
            "index-notation",
            {
                "queries_by_head.dim1": "N",
                "queries_by_head.dim2": "H",
                "keys_by_head.dim1": "N",
                "keys_by_head.dim2": "G",
                "context_by_token.dim1": "H",
                "context_by_token.dim2": "N",
            },
        ),
    ),
    Misconception(
        "shared-axes-summed",
        178,
        in_patterns(
            scores_pattern=7,
            sums_pattern=7,
            grouped_pattern=6,
            summed_in_scores=2,
            summed_in_own_scores=1,
            summed_in_context_by_token=2,
        ),
    ),
    Misconception("group-order-swapped", 179, in_patterns(split_pattern=2, merge_pattern=2, repeat_pattern=2)),
    Misconception("weights-for-each-input", 180, in_patterns(projection_pattern=2)),
    Misconception("axes-in-brackets-added", 181, on("index-notation", {"joined_context.dim2": "H + d_v"})),
)
