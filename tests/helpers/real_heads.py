"""A real head with made-up numbers and weights that are only listed, for tests of pages without torch."""

from __future__ import annotations

import numpy as np

from app.checkpoints.checkpoint import StoredPart, StoredTensor, Token
from app.checkpoints.files import ListedCheckpoint
from app.forward.lines import ProgramLine
from app.forward.real_head import RealHead

SMOLLM2_CONFIG = {
    "model_type": "llama",
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "rope_theta": 100000,
}
LISTED = ListedCheckpoint(
    key="smollm2", name="SmolLM2-135M-Instruct", source="smollm2", is_quantized=True, layers=30, heads=9
)  # fmt: skip


def made_up_head(text: str, layer: int, head: int) -> RealHead:
    """A head of SmolLM2 over a text whose words are its tokens, with numbers that are drawn, not computed."""
    words = text.split()
    tokens = (Token(100 + at, f"␣{word}", f" {word}".encode(), is_special=False) for at, word in enumerate(words))
    n, random = len(words), np.random.default_rng(layer * 100 + head)

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    mask = np.tril(np.ones((n, n), bool))
    weights = np.where(mask, 1 / mask.sum(axis=1, keepdims=True), 0).astype(np.float32)
    kv_head = head // 3
    stored = {"W_Q": (576, 576), "W_K": (192, 576), "W_V": (192, 576), "W_O": (576, 576)}
    parts = tuple(
        StoredPart(
            name,
            StoredTensor(f"blk.{layer}.attn_{name[-1].lower()}.weight", shape, "Q4_1"),
            dim=int(name == "W_O"),
            start=64 * (kv_head if name in ("W_K", "W_V") else head),
            length=64,
            is_turned=True,
            notes=("permuted",) if name == "W_Q" else ("permuted", "shared") if name == "W_K" else (),
        )
        for name, shape in stored.items()
    )
    arrays = {
        "embeddings": draw(n, 576),
        "input": draw(n, 576),
        "queries": draw(n, 64),
        "keys": draw(n, 64),
        "values": draw(n, 64),
        "scores": draw(n, n),
        "weights": weights,
        "context": draw(n, 64),
        "output": draw(n, 576),
    }
    return RealHead(
        checkpoint=LISTED.name, revision="0123456789ab", is_gguf=True, is_quantized=True, config=SMOLLM2_CONFIG,
        layer=layer, head=head, kv_head=kv_head,
        tokens=tuple(tokens), parts=parts,
        device="cpu", device_name="a processor that is not there", dtype="float32", milliseconds=1.5,
        arrays=arrays,
        layer_weights=np.repeat(weights[None], 9, axis=0).astype(np.float16), mask=mask,
        lines=(ProgramLine("Q = X @ W_Q", "queries", shapes=((n, 64),)),),
    )  # fmt: skip
