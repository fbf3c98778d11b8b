"""A head that has been run, made in numpy, and stored as its job stores it: no runner, no torch."""

from __future__ import annotations

import secrets

import numpy as np

from app.checkpoints.checkpoint import Token
from app.forward.head_scores import head_scores
from app.forward.real_head import RealHead
from app.machine.jobs import JobLimits
from app.machine.work_queue import THE_APP
from app.models.read_config import build_architecture
from app.store import Store
from tests.helpers.head_numbers import made_head

LIMITS = JobLimits(total=99, visitors=99, visitor=99, member=99)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 60,
}


def finished_head(text: str) -> RealHead:
    """Head 2 of layer 1 of a Llama with 2 layers of 4 heads, with random queries and keys; each letter is a token."""
    heads = [made_head(len(text), 8, seed) for seed in range(4)]
    this, ids = heads[2], [ord(letter) % 60 for letter in text]
    weights = np.stack([head.weights for head in heads]).astype(np.float16)
    shown = {"queries": this.queries, "keys": this.keys, "scores": this.scores, "weights": this.weights}
    wide = np.zeros((len(text), 32), np.float32)
    others = dict.fromkeys(("values", "context"), this.queries)
    return RealHead(
        checkpoint="small",
        revision="",
        is_quantized=False,
        config=CONFIG,
        architecture=build_architecture(CONFIG, "small"),
        layer=1,
        head=2,
        kv_head=1,
        tokens=tuple(Token(number, letter, letter.encode(), False) for number, letter in zip(ids, text, strict=True)),
        parts=(),
        device="cpu",
        device_name="",
        dtype="float32",
        milliseconds=1.0,
        peak_bytes=None,
        arrays={**shown, **others, **dict.fromkeys(("embeddings", "input", "output"), wide)},
        layer_weights=weights,
        mask=this.mask,
        parameters={},
        lines=(),
        head_scores=(*head_scores(weights[::-1], ids, 0), *head_scores(weights, ids, 1)),
    )


def stored_head(store: Store, real_head: RealHead) -> str:
    """Store a head as the result of a job that is done, and return its key."""
    key = secrets.token_urlsafe(18)
    about = {"checkpoint": real_head.checkpoint, "layer": real_head.layer, "head": real_head.head, "back": ""}
    choice = {"checkpoint": "small", "sentence": "a", "layer": real_head.layer, "head": real_head.head}
    job = store.jobs.add("head", THE_APP, LIMITS, "", key, None, about, choice)
    store.jobs.finish(job, "ready", "", real_head.to_bytes())
    return key
