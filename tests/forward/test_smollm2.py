"""SmolLM2 as its GGUF file has it against SmolLM2 as transformers reads it, which takes it ten seconds."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from app.checkpoints.checkpoint import Checkpoint
from app.checkpoints.files import SMOLLM2, open_checkpoint, smollm2_file
from app.forward.real_head import HiddenStates, likelihood, run_real_head
from app.settings import PROJECT
from tests.helpers.real_checkpoints import observe, relative_error
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow
MAX_ERROR = 1e-4
SENTENCE = "The cat sat on the mat because it was tired, and then the cat sat on the mat again."


@pytest.fixture(scope="module")
def smollm2() -> Checkpoint:
    return open_checkpoint(SMOLLM2, [])


@pytest.fixture(scope="module")
def theirs() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    file, read = str(smollm2_file()), load_gguf_checkpoint
    model: Any = LlamaForCausalLM(LlamaConfig(**read(file)["config"]))  # type: ignore[no-untyped-call]
    model.eval().set_attn_implementation("eager")
    tensors = read(file, return_tensors=True, model_to_load=model)["tensors"]  # type: ignore[no-untyped-call]
    assert set(model.load_state_dict(tensors, strict=False).missing_keys) <= {"lm_head.weight"}  # tied
    return model


def test_it_has_the_weights_and_tokens_that_transformers_reads(smollm2: Checkpoint, theirs: Any) -> None:
    from transformers import AutoTokenizer

    tensors = theirs.state_dict()
    for number in (0, 14, 29):
        layer, weights = f"model.layers.{number}", smollm2.layer_weights(number)
        for name in "QKVO":
            expected = tensors[f"{layer}.self_attn.{name.lower()}_proj.weight"]
            assert torch.equal(getattr(weights, f"W_{name}"), expected.T)
        for name in ("gate", "up", "down"):
            assert torch.equal(getattr(weights, f"W_{name}"), tensors[f"{layer}.mlp.{name}_proj.weight"].T)
        assert torch.equal(weights.attention_norm.scale, tensors[f"{layer}.input_layernorm.weight"])
        assert torch.equal(weights.mlp_norm.scale, tensors[f"{layer}.post_attention_layernorm.weight"])
    assert torch.equal(smollm2.final_norm().scale, tensors["model.norm.weight"])
    ids, embeddings = [504, 2644, 2, 504], tensors["model.embed_tokens.weight"]
    assert torch.equal(smollm2.embedding_rows(ids), embeddings[ids])
    assert torch.equal(smollm2.output_rows(slice(100, 200)), embeddings[100:200])
    path = smollm2_file()
    assert path is not None
    tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    text = (PROJECT / "docs" / "decisions.md").read_text()[:15_000] + "naïve 日本 2024-11-23 🙂\n\n<|im_end|>"
    assert [token.id for token in smollm2.tokens(text)] == tokenizer(text)["input_ids"]


def test_it_equals_transformers_on_the_same_dequantized_weights(
    smollm2: Checkpoint, theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    ids, states = [token.id for token in smollm2.tokens(SENTENCE)], HiddenStates()
    made: dict[str, Any] = {}
    for layer in (0, 14, 29):
        for letter in "qkv":
            module = getattr(theirs.model.layers[layer].self_attn, f"{letter}_proj")
            module.register_forward_hook(lambda _m, _i, out, key=f"{letter} {layer}": made.update({key: out}))
    observed = observe(theirs, ids)
    for layer in (0, 14, 29):
        queries, keys, values = (made[f"{letter} {layer}"].unflatten(-1, (-1, 64)).transpose(1, 2) for letter in "qkv")
        queries, keys = apply_rotary_pos_emb(
            queries, keys, *theirs.model.rotary_emb(queries, torch.arange(len(ids))[None])
        )
        matrix = theirs.model.layers[layer].self_attn.o_proj.weight.detach()
        for head in range(smollm2.architecture.H):
            run, weights = run_real_head(smollm2, SENTENCE, layer=layer, head=head, states=states), observed.weights
            expected = {
                "queries": queries[0, head],
                "keys": keys[0, head // 3],
                "scores": queries[0, head] @ keys[0, head // 3].T / 8,
                "weights": weights[layer][head],
                "output": weights[layer][head] @ values[0, head // 3] @ matrix[:, 64 * head : 64 * (head + 1)].T,
            }
            assert max(relative_error(run.arrays[name], each) for name, each in expected.items()) < MAX_ERROR
    assert likelihood(smollm2, SENTENCE, states=states) == pytest.approx(observed.likelihood, rel=MAX_ERROR)
    as_they_lie = open_checkpoint("smollm2", [])
    monkeypatch.setattr(as_they_lie._file, "is_permuted", lambda _name: False)
    assert likelihood(as_they_lie, SENTENCE) > observed.likelihood + 0.5  # 4.35 rather than 3.49


def test_what_the_sheet_about_it_says_of_its_head_and_of_all_heads(smollm2: Checkpoint, theirs: Any) -> None:
    sheet = LIBRARY.worksheets["it-attends-smollm2"]
    tokens = smollm2.tokens(sheet.sentence)
    words = [token.text.strip("␣") for token in tokens]
    it, cat = words.index("it"), words.index("cat")
    with torch.no_grad():
        layers = theirs(torch.tensor([[token.id for token in tokens]]), output_attentions=True).attentions
    weights = torch.stack(layers)[:, 0, :, it]  # layers × heads × tokens
    own, most = weights[sheet.layer, sheet.head, cat].item(), weights.argmax(-1) == cat
    said = re.findall(r"(\d+) % .* In (\d+) of the (\d+) heads", sheet.questions[0].text)
    assert said == [(f"{100 * own:.0f}", f"{most.sum()}", f"{most.numel()}")]
