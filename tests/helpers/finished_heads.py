"""A head that has been run, its numbers computed in numpy, stored as its job stores it."""

from __future__ import annotations

import secrets
from dataclasses import asdict, replace

import numpy as np

from app.forward.real_head import RealHead
from app.store import Store
from app.web.shared.head_request import HeadChoice
from tests.helpers.head_numbers import made_head
from tests.helpers.queued_jobs import add_job
from tests.helpers.real_heads import LISTED, made_up_head


def finished_head(text: str) -> RealHead:
    """Head 2 of layer 1 over a text whose words are its tokens, equal words with equal ids; no torch is needed."""
    plain, words = made_up_head(text, 1, 2), text.split()
    heads = [made_head(len(words), 64, seed) for seed in range(LISTED.heads)]
    this, ids = heads[2], [words.index(word) for word in words]
    weights = np.stack([head.weights for head in heads]).astype(np.float16)
    shown = {"queries": this.queries, "keys": this.keys, "scores": this.scores, "weights": this.weights}
    return replace(
        plain,
        tokens=tuple(replace(token, id=number) for token, number in zip(plain.tokens, ids, strict=True)),
        arrays={**plain.arrays, **shown},
        layer_weights=weights,
    )


def stored_head(store: Store, real_head: RealHead) -> str:
    """Store a head as the result of a finished job, and return its key."""
    key = secrets.token_urlsafe(18)
    about = {"checkpoint": real_head.checkpoint, "layer": real_head.layer, "head": real_head.head, "back": ""}
    choice = HeadChoice(LISTED.key, "a sentence", real_head.layer, real_head.head)
    with store.transaction():  # the server whose store it is may be looking for a waiting job
        job = add_job(store, key, kind="head", about=about, arguments=asdict(choice))
        begun = store.jobs.begin(job.id, "test")
    assert begun
    store.jobs.finish(begun[0], "ready", "", real_head.to_bytes())
    return key
