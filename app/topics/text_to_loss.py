"""From a batch's token ids to the training loss: logits at every position, and the tokens that they predict.

A decoder-only model predicts each token from the earlier ones, so a text's last position and first token have no
counterpart. An encoder-decoder reads its targets shifted right after a start token (T5, arXiv:1910.10683, section 3.1),
so every position has one. Whisper's encoder reads sound, whose frames a convolution halves.

>>> sizes = {"B": 2, "N": 5, "d": 4, "V": 9}
>>> [table.shapes(sizes)["flat_logits"] for table in (TEXT_TO_LOSS, TARGET_TEXT_TO_LOSS)]
[(8, 9), (10, 9)]
>>> IMAGE_TO_LOSS.shapes({"B": 2, "c": 3, "I": 224, "p": 16, "n_side": 14, "d": 768, "labels": 1000})["image_tokens"]
(2, 197, 768)
"""

from __future__ import annotations

from app.models.architecture import Architecture
from app.shapes.operation import Apply, Concat, Convolve, First, Lookup, Matmul, Reshape, Slice, Transpose
from app.shapes.table import TensorTable, learned, tensor
from app.topics.requirements import KNOWN_COMPUTATION, NEXT_TOKEN, Requirement
from app.topics.topic import FigurePlan, Topic
from app.topics.whole_model import WHOLE_MODEL
from app.translation import N_

_TO_LOGITS = (
    WHOLE_MODEL["embedding"],
    tensor("embedded", "X", "B, N, d", "input", Lookup("tokens embedding", "b n, v d -> b n d")),
    tensor("final", "Y", "B, N, d", "hidden", Apply("embedded", "b n d -> b n d", "{transformer}")),
    WHOLE_MODEL["output_head"],
    tensor("logits", "Z", "B, N, V", "output", Matmul("final output_head", "b n d, d v -> b n v")),
)

TEXT_TO_LOSS = TensorTable(
    "text-to-loss",
    (
        tensor("tokens", "t", "B, N", "input"),
        *_TO_LOGITS,
        tensor("shifted_logits", "Z_shift", "B, N - 1, V", "output", Slice("logits", "b n v -> b s v", drops="last")),
        tensor("targets", "y", "B, N - 1", "input", Slice("tokens", "b n -> b s", drops="first")),
        tensor("flat_logits", "Z_flat", "B*N - B, V", "output", Reshape("shifted_logits", "b s v -> (b s) v")),
        tensor("flat_targets", "y_flat", "B*N - B", "input", Reshape("targets", "b s -> (b s)")),
    ),
)

TARGET_TEXT_TO_LOSS = TensorTable(
    "target-text-to-loss",
    (
        tensor("targets", "y", "B, N", "input"),
        tensor("tokens", "t", "B, N", "input", Apply("targets", "b n -> b n", "shift_right")),
        *_TO_LOGITS,
        tensor("flat_logits", "Z_flat", "B*N, V", "output", Reshape("logits", "b n v -> (b n) v")),
        tensor("flat_targets", "y_flat", "B*N", "input", Reshape("targets", "b n -> (b n)")),
    ),
)

# Whisper's encoder (Radford et al., arXiv:2212.04356, section 2.2): two convolutions of width 3, each with a GELU.
SOUND_TO_LOSS = TensorTable(
    "sound-to-loss",
    (
        tensor("sound", "X_mel", "B, bands, 2*C", "input"),
        learned("W_conv", "d, bands, 3", "input"),
        tensor("convolved", "X_conv", "B, d, 2*C", "input",
               Convolve("sound W_conv", "b m t, d m k -> b d t", padding=1)),
        learned("W_stride", "d, d, 3", "input"),
        tensor("strided", "X_half", "B, d, C", "input",
               Convolve("convolved W_stride", "b c t, d c k -> b d s", stride="2", padding=1, activated=True)),
        tensor("heard", "X_enc", "B, C, d", "input", Transpose("strided", "b d s -> b s d")),
        *TARGET_TEXT_TO_LOSS.tensors,
    ),
)  # fmt: skip

# ViT (Dosovitskiy et al., arXiv:2010.11929, section 3.1): the matrix that embeds patches is a convolution with a stride
# of one patch.
IMAGE_TO_LOSS = TensorTable(
    "image-to-loss",
    (
        tensor("pixels", "X_img", "B, c, I, I", "input"),
        learned("W_patch", "d, c, p, p", "input"),
        tensor("patches", "P", "B, d, n_side, n_side", "input",
               Convolve("pixels W_patch", "b c i j, d c p q -> b d h w", stride="{p}")),
        tensor("flat_patches", "P_flat", "B, d, n_side*n_side", "input", Reshape("patches", "b d h w -> b d (h w)")),
        tensor("patch_tokens", "P_tok", "B, n_side*n_side, d", "input", Transpose("flat_patches", "b d n -> b n d")),
        tensor("class_tokens", "x_cls", "B, 1, d", "input"),
        tensor("image_tokens", "X", "B, n_side*n_side + 1, d", "input",
               Concat("class_tokens patch_tokens", "b i d, b n d -> b m d")),
        tensor("final", "Y", "B, n_side*n_side + 1, d", "hidden",
               Apply("image_tokens", "b m d -> b m d", "{transformer}")),
        tensor("class_vectors", "y_cls", "B, d", "hidden", First("final", "b m d -> b d")),
        learned("classifier", "d, labels", "output", letter="W_out"),
        tensor("logits", "Z", "B, labels", "output", Matmul("class_vectors classifier", "b d, d l -> b l")),
        tensor("classes", "y", "B", "input"),
    ),
)  # fmt: skip


def _has_target(architecture: Architecture, tokens: int) -> bool:
    if architecture.input == "image":
        return architecture.extra.get("labels", 1) > 1
    return architecture.has_lm_head if architecture.encoder_decoder else NEXT_TOKEN.is_met(architecture, tokens)


def _table(architecture: Architecture, _tokens: int) -> TensorTable:
    by_input = {"image": IMAGE_TO_LOSS, "sound": SOUND_TO_LOSS, "text": TARGET_TEXT_TO_LOSS}
    reads_text = architecture.input == "text" and not architecture.encoder_decoder
    return TEXT_TO_LOSS if reads_text else by_input[architecture.input]


_PREDICTS_TOKENS = Requirement(
    _has_target,
    N_(
        "{model} predicts neither a next token at every position nor the class of an image: choose a causal language "
        "model, such as GPT-2, or an image classifier, such as ViT base."
    ),
)
_NEXT_IN_TEXT = Requirement(
    lambda architecture, tokens: architecture.encoder_decoder or tokens > 1,
    N_("In a text of one token there is no next token for {model} to predict: choose at least 2 tokens."),
)
_ONE_MATRIX_AT_EACH_END = Requirement(
    lambda architecture, _tokens: {"embedding_projection", "head_transform"}.isdisjoint(architecture.outside_rows),
    N_(
        "{model} has further matrices between its embedding table and its layers, or between these and its logits, "
        "that this sheet does not show: choose a model such as GPT-2 or LLaMA 7B."
    ),
)

_LOGITS = FigurePlan("deck-logits", "final", ("logits",))
_OF_TARGET_TEXT = (
    _LOGITS,
    FigurePlan("deck-flat-logits", "logits", ("flat_logits",)),
    FigurePlan("deck-targets", "targets", ("tokens",)),
)

TOPIC = Topic(
    "text-to-loss",
    "model",
    _table,
    (KNOWN_COMPUTATION, _PREDICTS_TOKENS, _NEXT_IN_TEXT, _ONE_MATRIX_AT_EACH_END),
    about_attention=False,
    uses_decoder=True,
    batched=True,
    tables=(TEXT_TO_LOSS, TARGET_TEXT_TO_LOSS, SOUND_TO_LOSS, IMAGE_TO_LOSS),
    figures={
        TEXT_TO_LOSS.key: (
            _LOGITS,
            FigurePlan("deck-flat-logits", "shifted_logits", ("flat_logits",)),
            FigurePlan("deck-targets", "tokens", ("targets",)),
        ),
        TARGET_TEXT_TO_LOSS.key: _OF_TARGET_TEXT,
        SOUND_TO_LOSS.key: (
            FigurePlan("deck-sound", "sound", ("convolved", "strided", "heard")),
            *_OF_TARGET_TEXT,
        ),
        IMAGE_TO_LOSS.key: (
            FigurePlan("deck-patches", "pixels", ("patches", "flat_patches", "patch_tokens")),
            FigurePlan("deck-class-token", "class_tokens", ("image_tokens", "final", "class_vectors")),
            FigurePlan("deck-classes", "class_vectors", ("logits",)),
        ),
    },
)
