"""Computes the head on the start page, which servers without weights show too: `python -m simulation.kept_head`.

It needs SmolLM2's weights (`make serve WEIGHTS=smollm2` installs them) and takes a few seconds.
"""

from __future__ import annotations

import json
from typing import Any

from app.checkpoints.files import SMOLLM2, open_checkpoint
from app.figures.kept_head import KEPT_HEAD
from app.forward.real_head import HiddenStates, run_real_head

SENTENCE, LAYER, HEAD = "The cat sat on the mat because it was tired.", 13, 8
QUERY, KEY = 7, 1  # “it” and “cat”


def compute() -> dict[str, Any]:
    """The head's weights with the other heads' of its layer, and in how many heads QUERY looks most at KEY."""
    checkpoint, states = open_checkpoint(SMOLLM2, []), HiddenStates()
    layers = [
        run_real_head(checkpoint, SENTENCE, layer=layer, head=HEAD, states=states)
        for layer in range(checkpoint.architecture.L)
    ]
    chosen = layers[LAYER]
    return {
        "made_with": f"python -m simulation.kept_head: run_real_head on {chosen.checkpoint}, quantized to 4 bits",
        "sentence": SENTENCE,
        "layer": LAYER,
        "head": HEAD,
        "tokens": [token.text.removeprefix("␣") for token in chosen.tokens],
        "head_width": chosen.arrays["queries"].shape[1],
        "query": QUERY,
        "key": KEY,
        "heads_in_model": sum(len(layer.layer_weights) for layer in layers),
        "heads_that_agree": sum(
            int(weights[QUERY].argmax()) == KEY for layer in layers for weights in layer.layer_weights
        ),
        "heads_of_layer": [
            [[round(float(weight), 3) for weight in row[: query + 1]] for query, row in enumerate(weights)]
            for weights in chosen.layer_weights
        ],
    }


if __name__ == "__main__":
    text = json.dumps(compute(), ensure_ascii=False, separators=(",", ":"))
    KEPT_HEAD.write_text(text.replace(",[[", ",\n[[") + "\n")  # one head per line
