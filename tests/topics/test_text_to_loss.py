"""From token ids to the loss: shapes and loss equal those of transformers' own models in training."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch.nn.functional import cross_entropy

from app.models.read_config import build_architecture
from app.topics.problem import problem_for
from app.topics.registry import refusal
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.shipped import MODELS

Shapes = dict[str, tuple[int, ...]]
# Classes of transformers, with a small config.
DECODERS = [
    ("GPT2LMHeadModel", {"n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 50, "n_positions": 40}),
    (
        "Qwen3ForCausalLM",
        {
            "hidden_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
            "num_hidden_layers": 1, "vocab_size": 60, "intermediate_size": 20, "max_position_embeddings": 40,
        },
    ),
]  # fmt: skip
ENCODER_DECODERS = [
    (
        "T5ForConditionalGeneration",
        {
            "d_model": 12, "num_heads": 3, "d_kv": 4, "num_layers": 1, "vocab_size": 50, "d_ff": 20,
            "decoder_start_token_id": 0,
        },
    ),
    (
        "BartForConditionalGeneration",
        {
            "d_model": 12, "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_layers": 1,
            "decoder_layers": 1, "vocab_size": 50, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20,
            "max_position_embeddings": 40, "decoder_start_token_id": 2,
        },
    ),
]  # fmt: skip


def built(class_name: str, fields: dict[str, int]) -> Any:
    """The model of transformers with random weights."""
    model_class = getattr(transformers, class_name)
    return model_class(model_class.config_class(**fields)).eval()


def sheet_of(model: Any, tokens: int = TOKENS) -> tuple[dict[str, int], Shapes]:
    """The sizes and the shapes of a model's sheet."""
    fields = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    problem = problem_for("text-to-loss", build_architecture(fields, "The model"), (), tokens)
    return dict(problem.sizes), problem.table.shapes(problem.sizes)


def some_ids(sizes: dict[str, int]) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randint(3, sizes["V"], (sizes["B"], TOKENS))


def of_sheet(made: dict[str, torch.Tensor]) -> Shapes:
    return {key: tuple(tensor.shape) for key, tensor in made.items()}


@pytest.mark.parametrize(("class_name", "fields"), DECODERS)
def test_the_loss_of_a_language_model_is_that_of_its_shifted_logits(class_name: str, fields: dict[str, int]) -> None:
    model = built(class_name, fields)
    sizes, shapes = sheet_of(model)
    tokens = some_ids(sizes)
    with torch.no_grad():
        result = model(tokens, labels=tokens, output_hidden_states=True)
    shifted, targets = result.logits[:, :-1], tokens[:, 1:]
    made = {
        "tokens": tokens, "embedding": model.get_input_embeddings().weight,
        "embedded": model.get_input_embeddings()(tokens), "final": result.hidden_states[-1],
        "output_head": model.get_output_embeddings().weight.T, "logits": result.logits, "shifted_logits": shifted,
        "targets": targets, "flat_logits": shifted.reshape(-1, sizes["V"]), "flat_targets": targets.reshape(-1),
    }  # fmt: skip
    assert of_sheet(made) == shapes
    assert torch.allclose(made["final"] @ made["output_head"], made["logits"], atol=1e-5)
    assert torch.allclose(cross_entropy(made["flat_logits"], made["flat_targets"]), result.loss, atol=1e-6)


@pytest.mark.parametrize(("class_name", "fields"), ENCODER_DECODERS)
def test_the_loss_of_a_decoder_needs_no_shift_of_its_logits(class_name: str, fields: dict[str, int]) -> None:
    model = built(class_name, fields)
    sizes, shapes = sheet_of(model)
    targets = some_ids(sizes)
    with torch.no_grad():
        result = model(input_ids=targets[:, :5], labels=targets, output_hidden_states=True)
    tokens = torch.cat((torch.full_like(targets[:, :1], model.config.decoder_start_token_id), targets[:, :-1]), dim=1)
    with torch.no_grad():
        again = model(input_ids=targets[:, :5], decoder_input_ids=tokens)
    assert torch.allclose(again.logits, result.logits, atol=1e-5)
    made = {
        "targets": targets, "tokens": tokens, "embedding": model.get_input_embeddings().weight,
        "embedded": model.get_input_embeddings()(tokens), "final": result.decoder_hidden_states[-1],
        "output_head": model.get_output_embeddings().weight.T, "logits": result.logits,
        "flat_logits": result.logits.reshape(-1, sizes["V"]), "flat_targets": targets.reshape(-1),
    }  # fmt: skip
    assert of_sheet(made) == shapes
    assert torch.allclose(cross_entropy(made["flat_logits"], made["flat_targets"]), result.loss, atol=1e-6)


IMAGES = [(224, 16, 3, 1000), (32, 4, 1, 10), (30, 7, 3, 5)]  # side, side of a patch, channels, classes


@pytest.mark.parametrize(("image", "patch", "channels", "classes"), IMAGES)
def test_the_loss_of_an_image_classifier_is_that_of_its_class_token(
    image: int, patch: int, channels: int, classes: int
) -> None:
    fields = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 1, "intermediate_size": 20}
    model = built(
        "ViTForImageClassification",
        {**fields, "image_size": image, "patch_size": patch, "num_channels": channels, "num_labels": classes},
    )
    tokens = (image // patch) ** 2 + 1
    sizes, shapes = sheet_of(model, tokens)
    torch.manual_seed(0)
    pixels, labels = torch.rand(sizes["B"], channels, image, image), torch.randint(classes, (sizes["B"],))
    embeddings = model.vit.embeddings
    with torch.no_grad():
        result = model(pixels, labels=labels)
        patches = embeddings.patch_embeddings.projection(pixels)
        embedded = embeddings(pixels) - embeddings.position_embeddings
        final = model.vit(pixels).last_hidden_state
    flat = patches.reshape(*patches.shape[:2], -1)
    class_tokens = embeddings.cls_token.expand(sizes["B"], -1, -1)
    made = {
        "pixels": pixels, "W_patch": embeddings.patch_embeddings.projection.weight, "patches": patches,
        "flat_patches": flat, "patch_tokens": flat.transpose(1, 2), "class_tokens": class_tokens,
        "image_tokens": embedded, "final": final, "class_vectors": final[:, 0], "classifier": model.classifier.weight.T,
        "logits": result.logits, "classes": labels,
    }  # fmt: skip
    assert of_sheet(made) == shapes
    assert shapes["image_tokens"][1] == sizes["N"] == tokens
    assert torch.allclose(embedded, torch.cat((class_tokens, flat.transpose(1, 2)), dim=-2), atol=1e-6)
    assert torch.allclose(model.classifier(made["class_vectors"]), result.logits, atol=1e-6)
    assert torch.allclose(cross_entropy(made["logits"], labels), result.loss, atol=1e-6)


@pytest.mark.parametrize(("positions", "bands"), [(1500, 80), (20, 7)])
def test_a_convolution_halves_the_frames_of_sound(positions: int, bands: int) -> None:
    model = built(
        "WhisperForConditionalGeneration",
        {
            "d_model": 12, "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_layers": 1,
            "decoder_layers": 1, "vocab_size": 50, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "pad_token_id": 0,
            "bos_token_id": 1, "eos_token_id": 1, "decoder_start_token_id": 2, "num_mel_bins": bands,
            "max_source_positions": positions,
        },
    )  # fmt: skip
    sizes, shapes = sheet_of(model)
    targets, encoder = some_ids(sizes), model.model.encoder
    sound = torch.rand(sizes["B"], bands, 2 * positions)
    with torch.no_grad():
        convolved = encoder.conv1(sound)
        strided = encoder.conv2(torch.nn.functional.gelu(convolved))
        result = model(input_features=sound, labels=targets)
    made = {
        "sound": sound, "W_conv": encoder.conv1.weight, "convolved": convolved, "W_stride": encoder.conv2.weight,
        "strided": strided, "heard": strided.transpose(1, 2), "targets": targets, "logits": result.logits,
        "flat_logits": result.logits.reshape(-1, sizes["V"]), "flat_targets": targets.reshape(-1),
    }  # fmt: skip
    assert of_sheet(made) == {key: shapes[key] for key in made}
    assert made["heard"].shape == result.encoder_last_hidden_state.shape
    assert torch.allclose(cross_entropy(made["flat_logits"], made["flat_targets"]), result.loss, atol=1e-6)


def test_every_model_with_a_sheet_predicts_tokens_or_classes() -> None:
    for a in possible("text-to-loss"):
        if a.input == "image":
            assert a.extra["labels"] > 1, a.name
            continue
        assert a.has_lm_head, a.name
        assert a.causal or a.encoder_decoder, a.name
        assert a.all_sizes.get("d_emb", a.d) == a.d, a.name


@pytest.mark.parametrize("model", ["bert-base", "modernbert-base"])
def test_encoders_of_text_are_refused(model: str) -> None:
    assert "neither a next token" in (refusal("text-to-loss", MODELS[model], 50) or "")


@pytest.mark.parametrize(("class_name", "classes"), [("ViTModel", 1000), ("ViTForImageClassification", 1)])
def test_a_model_of_images_without_classes_is_refused(class_name: str, classes: int) -> None:
    fields = {**transformers.ViTConfig().to_dict(), "architectures": [class_name]}
    fields["id2label"] = dict.fromkeys(range(classes), "a class")
    assert "nor the class of an image" in (refusal("text-to-loss", build_architecture(fields, "The model"), 197) or "")


def test_a_text_of_one_token_has_no_next_one() -> None:
    assert "choose at least 2 tokens" in (refusal("text-to-loss", MODELS["gpt2"], 1) or "")
    assert refusal("text-to-loss", MODELS["t5-small"], 1) is None
