"""From a text to a checkpoint's tokens, by its tokenizer.json or by one built from a GGUF file's vocabulary.

A GGUF file names the rule for splitting text before the merges (`tokenizer.ggml.pre`) but doesn't contain it. Files
with a rule that isn't in PRE_TOKENIZERS are refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from app.checkpoints.checkpoint import CheckpointError, Token
from app.checkpoints.gguf import GgufIndex, array_items
from app.checkpoints.rules import BYTE_LEVEL, PRE_TOKENIZERS
from app.translation import gettext as _

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TEXT_CHARACTERS = 20_000
MAX_TOKENIZER_BYTES = 60_000_000
MAX_TOKENIZER_CONFIG_BYTES = 5_000_000
_CONTROL, _USER_DEFINED = 3, 4  # in tokenizer.ggml.token_type
_ENDS = ("bos", "eos")  # the tokens that may be added before and after a text

Tokenize = Callable[[str], tuple[Token, ...]]

# How a page shows invisible characters.
_VISIBLE = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥"}


def json_tokenizer(read: Callable[[str, int], bytes | None], name: str, size: int) -> Tokenize:
    """The tokenizer of a folder's tokenizer.json, for a model with `size` rows of embeddings; loaded when used."""
    load = cache(lambda: _guarded(name, lambda: _load_json(read, name)))
    return lambda text: _tokens(load, text, size, name)


def gguf_tokenizer(index: GgufIndex, size: int) -> Tokenize:
    """The tokenizer built from a GGUF file's vocabulary, for a model with `size` rows of embeddings."""
    load = cache(lambda: _guarded(index.path.name, lambda: _build(index)))
    return lambda text: _tokens(load, text, size, index.path.name)


def _tokens(load: Callable[[], Tokenizer], text: str, size: int, name: str) -> tuple[Token, ...]:
    if not text:
        raise CheckpointError(_("There is no text: type a sentence."))
    if len(text) > MAX_TEXT_CHARACTERS:
        problem = _("The text has {count:,} characters; at most {most:,} can be tokenized.")
        raise CheckpointError(problem.format(count=len(text), most=MAX_TEXT_CHARACTERS))
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise CheckpointError(_("The text has half a character in it, which no tokenizer can read."))
    tokenizer = load()
    encoding = _guarded(name, lambda: tokenizer.encode(text))
    added = tokenizer.get_added_tokens_decoder()
    to_bytes = _spelling(tokenizer, name)
    tokens = []
    for number, spelled in zip(encoding.ids, encoding.tokens, strict=True):
        if number >= size:
            problem = _("The tokenizer of {checkpoint} has token {number}, for which the model has no embedding.")
            raise CheckpointError(problem.format(checkpoint=name, number=number))
        is_added = number in added
        raw = added[number].content.encode() if is_added else _guarded(name, partial(to_bytes, spelled))
        tokens.append(Token(number, visible(raw), raw, is_special=is_added and added[number].special))
    if not tokens:
        raise CheckpointError(_("The text has no tokens: type a sentence."))
    return tuple(tokens)


def visible(raw: bytes) -> str:
    r"""Bytes as a page shows them: ␣ space, ↵ newline, ␍ return, ⇥ tab, and ⟨U+200B⟩ for other invisible ones.

    >>> visible(b" caf\xc3\xa9 \xe2")
    '␣café␣⟨E2⟩'
    """
    shown = []
    for character in raw.decode(errors="surrogateescape"):
        if "\udc80" <= character <= "\udcff":
            shown.append(f"⟨{ord(character) - 0xDC00:02X}⟩")
        elif character in _VISIBLE:
            shown.append(_VISIBLE[character])
        else:
            shown.append(character if character.isprintable() else f"⟨U+{ord(character):04X}⟩")
    return "".join(shown)


def _guarded(name: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except CheckpointError:
        raise
    except BaseException as error:  # tokenizers raises plain Exceptions, and a Rust panic isn't even an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        problem = _("The tokenizer of {checkpoint} is damaged, or of a kind that can’t be read here.")
        raise CheckpointError(problem.format(checkpoint=name)) from None


def _spelling(tokenizer: Tokenizer, name: str) -> Callable[[str], bytes]:
    decoder = json.loads(tokenizer.decoder.__getstate__()) if tokenizer.decoder else {}
    kinds = {part.get("type") for part in (decoder, *decoder.get("decoders", ()))}
    if "ByteLevel" in kinds:
        return lambda spelled: bytes(map(_byte_alphabet().__getitem__, spelled))
    if kinds & {"Metaspace", "ByteFallback"}:
        return _from_pieces
    problem = _("The tokenizer of {checkpoint} is of a kind that can’t be read here.")
    raise CheckpointError(problem.format(checkpoint=name))


def _from_pieces(spelled: str) -> bytes:
    if len(spelled) == 6 and spelled.startswith("<0x") and spelled.endswith(">"):
        return bytes.fromhex(spelled[3:5])
    return spelled.replace("▁", " ").encode()


@cache
def _byte_alphabet() -> Mapping[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _load_json(read: Callable[[str, int], bytes | None], name: str) -> Tokenizer:
    from tokenizers import Tokenizer

    content = read("tokenizer.json", MAX_TOKENIZER_BYTES)
    if content is None:
        raise CheckpointError(_("{checkpoint} has no tokenizer.json.").format(checkpoint=name))
    tokenizer: Tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    config = json.loads(read("tokenizer_config.json", MAX_TOKENIZER_CONFIG_BYTES) or b"{}")
    for entry in (config.get("added_tokens_decoder") or {}).values():
        if tokenizer.token_to_id(entry["content"]) is None:
            problem = _("{checkpoint}’s tokenizer_config.json adds “{token}”, which its tokenizer.json doesn’t have.")
            raise CheckpointError(problem.format(checkpoint=name, token=entry["content"][:40]))
    return tokenizer


def _build(index: GgufIndex) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    kind, split = index.metadata.get("tokenizer.ggml.model"), index.metadata.get("tokenizer.ggml.pre")
    rule = PRE_TOKENIZERS.get(split) if isinstance(split, str) else None
    if kind != BYTE_LEVEL or rule is None:
        problem = _(
            "{file} has a tokenizer of the kind “{kind}”, “{split}”; only {byte_level} with {known} is read here."
        )
        names = {"kind": str(kind)[:40], "split": str(split)[:40], "known": ", ".join(PRE_TOKENIZERS)}
        raise CheckpointError(problem.format(file=index.path.name, byte_level=BYTE_LEVEL, **names))
    words = array_items(index, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in array_items(index, "tokenizer.ggml.merges")]
    kinds = array_items(index, "tokenizer.ggml.token_type")
    vocabulary = {word: number for number, word in enumerate(words)}
    if len(vocabulary) != len(words) or len(kinds) not in (0, len(words)):
        raise ValueError
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=rule.whole_words))
    if rule.composes:
        tokenizer.normalizer = normalizers.NFC()
    splits: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if rule.single_digits else []
    if rule.expression:
        splits.append(pre_tokenizers.Split(Regex(rule.expression), behavior="isolated"))
    splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not rule.expression))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    whole = [(word, kind) for word, kind in zip(words, kinds, strict=False) if kind in (_CONTROL, _USER_DEFINED)]
    tokenizer.add_tokens([AddedToken(word, normalized=False, special=kind == _CONTROL) for word, kind in whole])
    adds = {name: index.metadata.get(f"tokenizer.ggml.add_{name}_token") for name in _ENDS}
    adds["bos"] = rule.begins if adds["bos"] is None else adds["bos"]
    numbers = {name: index.metadata[f"tokenizer.ggml.{name}_token_id"] for name in _ENDS if adds[name]}
    ends = {name: words[number] for name, number in numbers.items()}
    template = " ".join(filter(None, (ends.get("bos"), "$A", ends.get("eos"))))
    special = [(token, tokenizer.token_to_id(token)) for token in ends.values()]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, pair=f"{template} $B", special_tokens=special
    )
    return tokenizer
