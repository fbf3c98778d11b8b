"""The programs of app/bugs/programs.py again: head by head in torch, from the formula, in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def _weighted(q: torch.Tensor, k: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
    import torch

    scores = torch.einsum("nf,mf->nm", q, k) / math.sqrt(q.shape[1])
    powers = scores.exp() if hidden is None else scores.exp() * (~hidden)
    return powers / powers.sum(1, keepdim=True)


def output_by_hand(
    program: str, given: Mapping[str, torch.Tensor], sizes: Mapping[str, int], mask: str
) -> torch.Tensor:
    """The output of the program with this key; `mask` is "causal", "padded" or ""."""
    import torch

    if program == "one-head":
        X, tokens = given["X"], sizes["N"]
        later = torch.arange(tokens)[None, :] > torch.arange(tokens)[:, None]
        Q, K, V = (torch.einsum("nd,df->nf", X, given[name]) for name in ("W_Q", "W_K", "W_V"))
        return _weighted(Q, K, later if mask == "causal" else None) @ V @ given["W_O"]
    H, d_h = sizes["H"], sizes["d_h"]
    shared = H // sizes.get("G", H)
    decodes = program.startswith("decoding")
    asking = given["x"] if decodes else given["X"]
    read = given["E"] if program == "cross" else asking
    W = dict(given)
    if program == "fused":
        G = sizes["G"]
        W["W_Q"], W["W_K"], W["W_V"] = given["W_QKV"][: H * d_h], given["W_QKV"][H * d_h :][: G * d_h], given["W_QKV"][
            (H + G) * d_h :]  # fmt: skip
    batch = []
    for b in range(asking.shape[0]):
        heads = []
        for head in range(H):
            mine, shares = slice(head * d_h, (head + 1) * d_h), head // shared
            of_group = slice(shares * d_h, (shares + 1) * d_h)
            q, k = asking[b] @ W["W_Q"][mine].T, read[b] @ W["W_K"][of_group].T
            v = read[b] @ W["W_V"][of_group].T if "W_V" in W else None
            if decodes and v is not None:
                k, v = torch.vstack([given["K_cache"][b, shares], k]), torch.vstack([given["V_cache"][b, shares], v])
            if program == "rotary":
                turn = torch.complex(given["cos"], given["sin"])
                q, k = (_turned(each, turn) for each in (q, k))
            n, m = q.shape[0], k.shape[0]
            hidden = None
            if mask == "causal" and not decodes:
                hidden = torch.arange(m)[None, :] > torch.arange(n)[:, None]
            if mask == "padded" and not decodes:
                hidden = given["padding"][b][None, :].expand(n, m)
            A = _weighted(q, k, hidden)
            heads.append(A if v is None else A @ v)
        batch.append(torch.stack(heads) if program == "rotary" else torch.cat(heads, 1) @ W["W_O"].T)
    return torch.stack(batch)


def _turned(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    import torch

    half = x.shape[1] // 2
    numbers = torch.complex(x[:, :half], x[:, half:]) * turn
    return torch.cat((numbers.real, numbers.imag), 1)
