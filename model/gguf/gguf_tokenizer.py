"""Tokenizer of a GGUF file, from its metadata: byte-level BPE, or SentencePiece's BPE."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tokenizers
from tokenizers import AddedToken, models

from model.errors import LoadingNote, ModelError
from model.pretrained.tokenizer import BYTE, QWEN_PATTERN, PretrainedTokenizer, WordSplit, build_sentencepiece

# Name in chat templates -> of the id in the metadata.
SPECIAL_NAMES = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id"}
SPECIAL_NAMES |= {"pad_token": "padding_token_id"}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, SINGLE_BYTE = range(1, 7)  # `tokenizer.ggml.token_type`
# Names of tokens that end a turn, which files do not always list as such (llama.cpp, `llama-vocab.cpp`).
END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>")

# How texts are cut into words, from the tokenizers of Llama 3 and Mistral Nemo.
LLAMA3_PATTERN = QWEN_PATTERN.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
TEKKEN_PATTERN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


_GPT2 = WordSplit()
_LLAMA3 = WordSplit(LLAMA3_PATTERN, ignores_merges=True, adds_bos=True)
_WORD_SPLITS = {  # `tokenizer.ggml.pre`
    "default": _GPT2,
    "gpt-2": _GPT2,
    "phi-2": _GPT2,
    "smollm": WordSplit(splits_digits=True),
    "qwen2": WordSplit(QWEN_PATTERN, applies_nfc=True),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smaug-bpe": _LLAMA3._replace(adds_bos=False),
    "dbrx": _LLAMA3._replace(adds_bos=False, ignores_merges=False),
    "tekken": WordSplit(TEKKEN_PATTERN, ignores_merges=True, adds_bos=True),
}


def read_gguf_tokenizer(metadata: Mapping[str, Any], vocab_size: int) -> PretrainedTokenizer:
    """Return the tokenizer that a file's metadata describe, with its chat template.

    Args:
        vocab_size: of the model, which may have more ids than there are pieces.

    Raises:
        ModelError: it is of another kind, damaged, or another model's.
    """
    values = {name.removeprefix("tokenizer.ggml."): value for name, value in metadata.items()}
    pieces, kind = values.get("tokens"), values.get("model")
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ModelError("its metadata lack {name}", name="tokenizer.ggml.tokens")
    if len(pieces) > vocab_size:
        raise ModelError("the tokenizer has {tokens} tokens, the model {known}", tokens=len(pieces), known=vocab_size)
    token_types = _numbers(values, "token_type", len(pieces), default=NORMAL)
    notes = []
    if kind == "gpt2":
        name = values.get("pre", "default")
        if name not in _WORD_SPLITS:
            raise ModelError(
                "its tokenizer cuts texts into words as {kind!r}, which is not understood, only {known}",
                kind=name,
                known=", ".join(sorted(_WORD_SPLITS)),
            )
        if "pre" not in values:
            notes.append(
                LoadingNote("the file does not say how its tokenizer cuts texts into words: as GPT-2’s is assumed")
            )
        tokenizer, adds_bos = _byte_level(values, pieces, _WORD_SPLITS[name]), _WORD_SPLITS[name].adds_bos
    elif kind == "llama":
        tokenizer, adds_bos = _sentencepiece(values, pieces, token_types), True
    else:
        raise ModelError(
            "its tokenizer is of the kind {kind!r}, which is not understood, only {known}",
            kind=kind,
            known="gpt2, llama",
        )
    specials = {token_id for token_id, kind in enumerate(token_types) if kind in (UNKNOWN, CONTROL)}
    specials |= {id_ for name in ("bos_token_id", "eos_token_id") for id_ in _ids(values, name, len(pieces))}
    tokenizer.add_tokens(
        [
            AddedToken(piece, special=False, normalized=False)
            for piece, kind in zip(pieces, token_types, strict=True)
            if kind == USER_DEFINED and piece
        ]
    )
    tokenizer.add_special_tokens([AddedToken(pieces[id_], special=True, normalized=False) for id_ in sorted(specials)])
    template = metadata.get("tokenizer.chat_template")
    eos_ids = [id_ for name in ("eos_token_id", "eot_token_id") for id_ in _ids(values, name, len(pieces))]
    if isinstance(template, str):
        eos_ids += [id_ for id_ in sorted(specials) if pieces[id_] in END_OF_TURN and pieces[id_] in template]
    bos_ids = _ids(values, "bos_token_id", len(pieces)) if values.get("add_bos_token", adds_bos) else []
    return PretrainedTokenizer(
        tokenizer,
        specials,
        bos_ids,
        tuple(dict.fromkeys(eos_ids)),
        vocab_size,
        notes,
        template if isinstance(template, str) else None,
        {name: pieces[id_] for name, key in SPECIAL_NAMES.items() for id_ in _ids(values, key, len(pieces))},
    )


def _numbers(values: Mapping[str, Any], name: str, count: int, default: float) -> list[float]:
    """Return a number per piece, `default` if the file has none; ModelError if there are not as many."""
    numbers = values.get(name)
    if numbers is None:
        return [default] * count
    if not isinstance(numbers, np.ndarray) or len(numbers) != count:
        raise ModelError(
            "{name} is not a list of {count} numbers, one a token", name=f"tokenizer.ggml.{name}", count=count
        )
    return numbers.tolist()


def _ids(values: Mapping[str, Any], name: str, count: int) -> list[int]:
    """Return the id of this name in a list, empty if the file has none."""
    token_id = values.get(name)
    return [token_id] if isinstance(token_id, int) and 0 <= token_id < count else []


def _byte_level(values: Mapping[str, Any], pieces: Sequence[str], split: WordSplit) -> tokenizers.Tokenizer:
    merges = values.get("merges", [])
    pairs = [tuple(merge.split(" ")) for merge in merges if isinstance(merge, str)]
    ids = {piece: token_id for token_id, piece in reversed(list(enumerate(pieces)))}
    try:
        tokenizer = tokenizers.Tokenizer(models.BPE(ids, pairs, ignore_merges=split.ignores_merges))
    except Exception as error:  # the package raises no narrower one
        raise ModelError("its tokenizer cannot be read: {why}", why=str(error) or type(error).__name__) from None
    split.apply(tokenizer, values.get("add_space_prefix", False) is True)
    return tokenizer


def find_word_split(tokenizer: tokenizers.Tokenizer) -> str | None:
    """Return how a byte-level tokenizer cuts texts into words, by the name in GGUF files; None if that has no name."""
    description = json.loads(tokenizer.to_str())
    for name, split in _WORD_SPLITS.items():
        other = tokenizers.Tokenizer(models.BPE(ignore_merges=split.ignores_merges))
        split.apply(other)
        expected = json.loads(other.to_str())
        if (
            _steps(description["pre_tokenizer"]) == _steps(expected["pre_tokenizer"])
            and description["normalizer"] == expected["normalizer"]
            and description["model"].get("ignore_merges") == expected["model"]["ignore_merges"]
        ):
            return name
    return None


def _steps(pre_tokenizer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the steps of a pre-tokenizer, without settings that change no ids."""
    steps = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer] if pre_tokenizer else [])
    return [{key: value for key, value in step.items() if key != "trim_offsets"} for step in steps]


def _sentencepiece(
    values: Mapping[str, Any], pieces: Sequence[str], token_types: Sequence[float]
) -> tokenizers.Tokenizer:
    scores = _numbers(values, "scores", len(pieces), default=0.0)
    unknown = next((pieces[token_id] for token_id, kind in enumerate(token_types) if kind == UNKNOWN), None)
    mergeable = [
        token_id
        for token_id, kind in enumerate(token_types)
        if kind in (NORMAL, USER_DEFINED) and not BYTE.fullmatch(pieces[token_id])
    ]
    return build_sentencepiece(pieces, scores, unknown, mergeable, values.get("add_space_prefix", True) is not False)
