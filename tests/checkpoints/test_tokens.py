"""Tokens: ids equal transformers', bytes rebuild the text, and texts and tokenizers that can't be used are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import SMOLLM2, open_checkpoint
from app.checkpoints.rules import PRE_TOKENIZERS
from app.checkpoints.tokens import MAX_TEXT_CHARACTERS, json_tokenizer, visible
from tests.helpers.small_checkpoints import small_model, write_gguf

TEXTS = [
    "The cat sat on the mat because it was warm.",
    " Two  spaces,\ttabs\n\nand lines \n",
    "It's 2024: I've 1,234,567 reasons",
    "naïve café, e\u0301 composed, 🙂 smile 👩‍👩‍👧, Ünïcödé",
    "日本語のテキスト مرحبا Привет",
    "<|endoftext|>hello<|im_end|>",
    "x" * 300,
]
SPECIAL = ["<|endoftext|>", "<|im_end|>"]
WORDS = 400


def trained(*, single_digits: bool = False) -> Tokenizer:
    """A small byte-level BPE tokenizer, trained on the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if single_digits:
        splits = [pre_tokenizers.Digits(individual_digits=True), tokenizer.pre_tokenizer]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def with_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tokenizer, dict[str, Any]], Path]:
    """Makes a folder of a small llama with this tokenizer.json and tokenizer_config.json."""
    model = small_model("llama", vocab_size=WORDS)

    def make(tokenizer: Tokenizer, config: dict[str, Any]) -> Path:
        folder = tmp_path_factory.mktemp("model")
        model.save_pretrained(folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return folder

    return make


def sentence_pieces() -> Tokenizer:
    """A tokenizer with ▁ for a space and bytes for what its vocabulary lacks, as LLaMA 2, Gemma and Phi-3 have it."""
    words = [
        "<unk>",
        "<s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        *"abcdefghijklmnopqrstuvwxyz",
        "th",
        "▁th",
    ]
    tokenizer = Tokenizer(
        models.BPE({word: i for i, word in enumerate(words)}, [("t", "h"), ("▁", "th")], byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "config"),
    [
        (trained, {"eos_token": "<|endoftext|>"}),
        (trained, {"bos_token": "<|endoftext|>", "add_bos_token": True}),  # only tokenizer.json counts
        (sentence_pieces, {"bos_token": "<s>", "add_bos_token": False}),
    ],
)
def test_ids_are_those_of_transformers(
    tokenizer: Callable[[], Tokenizer],
    config: dict[str, Any],
    with_tokenizer: Callable[[Tokenizer, dict[str, Any]], Path],
) -> None:
    from transformers import AutoTokenizer

    folder = with_tokenizer(tokenizer(), config)
    checkpoint, theirs = open_checkpoint(folder, [folder]), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        tokens = checkpoint.tokens(text)
        assert [token.id for token in tokens] == theirs(text)["input_ids"], text
        written = b"".join(token.raw for token in tokens if token.raw != b"<s>").decode()
        assert written in (text, f" {text}")


def gguf_with(tokenizer: Tokenizer, path: Path, **metadata: Any) -> Path:
    """A small llama as GGUF with the vocabulary of a tokenizer."""
    model = json.loads(tokenizer.to_str())["model"]
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    vocabulary = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [3 if word in SPECIAL else 1 for word in words],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in model["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        **metadata,
    }
    small = small_model("llama", attention_bias=False, mlp_bias=False, vocab_size=WORDS)
    return write_gguf(small, path, **{name: value for name, value in vocabulary.items() if value is not None})


@pytest.mark.parametrize("split", PRE_TOKENIZERS)
def test_ids_of_a_gguf_vocabulary_are_those_of_transformers(split: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, Qwen2Tokenizer

    tokenizer = trained(single_digits=split == "smollm")
    path = gguf_with(tokenizer, tmp_path / "model.gguf", **{"tokenizer.ggml.pre": split})
    checkpoint, theirs = open_checkpoint(path, [tmp_path]), AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    if split == "qwen2":  # which composes accents, as the loader of GGUF files forgets to
        model = json.loads(tokenizer.to_str())["model"]
        merges: Any = [tuple(merge) for merge in model["merges"]]
        theirs = Qwen2Tokenizer(model["vocab"], merges, extra_special_tokens=SPECIAL)
    begins = [0] if PRE_TOKENIZERS[split].begins else []
    for text in TEXTS:
        assert [token.id for token in checkpoint.tokens(text)] == begins + theirs(text)["input_ids"], text


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"tokenizer.ggml.pre": "tekken"}, "tekken"),
        ({"tokenizer.ggml.pre": None}, "None"),
        ({"tokenizer.ggml.model": "llama"}, "“llama”"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, "damaged"),
        ({"tokenizer.ggml.merges": ["a b c"]}, "damaged"),
        ({"tokenizer.ggml.tokens": None}, "damaged"),
        ({"tokenizer.ggml.add_bos_token": 1, "tokenizer.ggml.bos_token_id": 10_000}, "damaged"),
    ],
)
def test_vocabularies_that_are_not_known_are_refused(stated: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = gguf_with(trained(), tmp_path / "model.gguf", **stated)
    checkpoint = open_checkpoint(path, [tmp_path])
    assert checkpoint.head_weights(0, 0)
    with pytest.raises(CheckpointError, match=named):
        checkpoint.tokens("a")


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"model": {"type": "BPE"}}', "[" * 100_000, '{"version": "1.0", "model": null}', "\0"]
)
def test_a_damaged_tokenizer_gets_one_sentence(
    content: str, with_tokenizer: Callable[[Tokenizer, dict[str, Any]], Path]
) -> None:
    folder = with_tokenizer(trained(), {})
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match="tokenizer"):
        open_checkpoint(folder, [folder]).tokens("a")


@pytest.mark.parametrize(
    ("before", "named"),
    [
        ("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
        ("\ufeff", "begins with a byte order mark"),
    ],
)
def test_a_tokenizer_that_cannot_be_read_as_it_is_is_named(
    before: str, named: str, with_tokenizer: Callable[[Tokenizer, dict[str, Any]], Path]
) -> None:
    folder = with_tokenizer(trained(), {})
    path = folder / "tokenizer.json"
    path.write_text(before + path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(Exception, match="line 1 column 1"):
        Tokenizer.from_file(str(path))
    with pytest.raises(CheckpointError, match=rf"tokenizer\.json of .* {named}"):
        open_checkpoint(folder, [folder]).tokens("a")


def test_tokens_that_only_the_config_adds_are_refused(
    with_tokenizer: Callable[[Tokenizer, dict[str, Any]], Path],
) -> None:
    folder = with_tokenizer(trained(), {"added_tokens_decoder": {"999": {"content": "<tool>"}}})
    with pytest.raises(CheckpointError, match="<tool>"):
        open_checkpoint(folder, [folder]).tokens("a")


@pytest.mark.parametrize(
    ("word", "decoder"),
    [("日", decoders.ByteLevel()), ("<0xZZ>", decoders.ByteFallback())],
    ids=["no character of GPT-2's alphabet", "no byte"],
)
def test_words_that_spell_no_bytes_are_refused(word: str, decoder: decoders.Decoder) -> None:
    tokenizer = Tokenizer(models.WordLevel({word: 0}, unk_token=word))
    tokenizer.decoder = decoder
    content = tokenizer.to_str().encode()
    tokenize = json_tokenizer(lambda name, _most: content if name == "tokenizer.json" else None, "odd", 1)
    with pytest.raises(CheckpointError, match="The tokenizer of odd is damaged"):
        tokenize(word)


def test_texts_are_bounded_before_anything_looks_at_them() -> None:
    checkpoint = open_checkpoint(SMOLLM2, [])
    for text in ("", "x" * (MAX_TEXT_CHARACTERS + 1), "a\ud800"):
        with pytest.raises(CheckpointError):
            checkpoint.tokens(text)
    assert len(checkpoint.tokens("a" * MAX_TEXT_CHARACTERS)) > 1000


def test_smollm2_has_digits_and_spaces_as_tokens() -> None:
    tokens = open_checkpoint(SMOLLM2, []).tokens("Paris 2024\n<|im_end|>")
    assert [token.text for token in tokens] == ["Paris", "␣", "2", "0", "2", "4", "↵", "<|im_end|>"]
    assert [token.is_special for token in tokens] == [False] * 7 + [True]
    assert tokens[-1].id == 2


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b" a", "␣a"), (b"\n\t", "↵⇥"), (b"\xe2\x82", "⟨E2⟩⟨82⟩"), ("\u200bé".encode(), "⟨U+200B⟩é"), (b"", "")],
)
def test_spaces_and_odd_bytes_are_visible(raw: bytes, shown: str) -> None:
    assert visible(raw) == shown
