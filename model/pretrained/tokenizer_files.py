"""The files of a tokenizer that came with a model: `tokenizer.json`, or else `vocab.json` and `merges.txt`."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from model.errors import ModelError
from model.notes import Note
from model.pretrained.tokenizer import PretrainedTokenizer
from model.reading import MOST_TOKENIZER_BYTES, read_json, readable

TOKENIZER_JSON, VOCAB, MERGES = "tokenizer.json", "vocab.json", "merges.txt"
SETTINGS, SPECIALS, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
TOKENIZER_FILES = (TOKENIZER_JSON, VOCAB, MERGES, SETTINGS, SPECIALS, ADDED)
OF_A_TOKENIZER = re.compile(r"(?i)token|vocab|merges|spiece|sentencepiece|\.(model|spm|tiktoken)$")
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
END = "<|endoftext|>"
MOST_STRAY_PIECES = 1 / 8  # of the model's vocabulary: with more beyond it, the tokenizer is another model's

# How Qwen 2 cuts a text into words (https://huggingface.co/Qwen/Qwen2-7B/blob/main/tokenizer.json).
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class _ByteLevelClass(NamedTuple):
    """How one of transformers' tokenizer classes reads `vocab.json` and `merges.txt`.

    Attributes:
        named: the special tokens that it names where no file does.
        composes: whether characters are composed (Unicode's NFC) first.
        pattern: of the words that a text is cut into; None: GPT-2's.
    """

    named: dict[str, str]
    composes: bool = False
    pattern: str | None = None


_GPT2_NAMES = {"bos_token": END, "eos_token": END, "unk_token": END}
_CLASSES = {
    "GPT2Tokenizer": _ByteLevelClass(_GPT2_NAMES),
    "CodeGenTokenizer": _ByteLevelClass(_GPT2_NAMES),
    "GPTNeoXTokenizer": _ByteLevelClass(_GPT2_NAMES | {"pad_token": "<|padding|>"}, composes=True),
    "Qwen2Tokenizer": _ByteLevelClass(
        {"eos_token": END, "unk_token": END, "pad_token": END}, composes=True, pattern=QWEN_PATTERN
    ),
}
_CLASS_OF_TYPE = {  # model_type -> the class of models whose files name none
    "gpt2": "GPT2Tokenizer",
    "gpt_neo": "GPT2Tokenizer",
    "opt": "GPT2Tokenizer",
    "phi": "CodeGenTokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
}


def read_tokenizer(folder: Path, vocab_size: int, ends: Sequence[int]) -> PretrainedTokenizer:
    """Return the tokenizer of a folder: of `tokenizer.json`, or else of `vocab.json` and `merges.txt`.

    Args:
        vocab_size: of its model. Ids beyond it are left out.
        ends: ids after which a text is over.

    Raises:
        ModelError: there are no such files, or one cannot be read, or they are another model's.
    """
    if (folder / TOKENIZER_JSON).exists():
        return read_tokenizer_json(folder / TOKENIZER_JSON, vocab_size, ends)
    if (folder / VOCAB).exists() and (folder / MERGES).exists():
        return _read_vocab_and_merges(folder, vocab_size, ends)
    there = sorted(path.name for path in folder.iterdir() if OF_A_TOKENIZER.search(path.name))
    raise ModelError(
        "its tokenizer is read from {wanted}, or else from {others}, and there is {found}: transformers’ "
        "AutoTokenizer.from_pretrained(…).save_pretrained(…) makes a {wanted} of most others",
        wanted=TOKENIZER_JSON,
        others=f"{VOCAB} + {MERGES}",
        found=", ".join(there) or "–",
    )


def read_tokenizer_json(path: Path, vocab_size: int, ends: Sequence[int]) -> PretrainedTokenizer:
    """Return the tokenizer of a `tokenizer.json`; see `read_tokenizer`."""
    try:
        content = readable(path, MOST_TOKENIZER_BYTES).read_text(encoding="utf-8")
        tokenizer = tokenizers.Tokenizer.from_str(content)
    except ModelError:
        raise
    except Exception as error:  # the package raises no narrower one
        raise ModelError("its {file} cannot be read: {why}", file=path.name, why=str(error)) from None
    # A text's ids are as many as it has, and the same each time.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if isinstance(tokenizer.model, models.BPE):
        tokenizer.model.dropout = None
    return _with_rows(tokenizer, vocab_size, ends, _beginning(tokenizer))


def _read_vocab_and_merges(folder: Path, vocab_size: int, ends: Sequence[int]) -> PretrainedTokenizer:
    for name in (VOCAB, MERGES):
        readable(folder / name, MOST_TOKENIZER_BYTES)
    settings = _read_settings(folder)
    kind = _class_of(folder, settings)
    named = {name: _text_of(settings.get(name, kind.named.get(name))) for name in NAMED}
    try:
        ids, merges = models.BPE.read_file(str(folder / VOCAB), str(folder / MERGES))
        added = _added_tokens(folder, settings, {text for text in named.values() if text})
        for token_id, token in added.items():
            ids.setdefault(token.content, token_id)
        for text in filter(None, named.values()):
            ids.setdefault(text, max(ids.values(), default=-1) + 1)
        tokenizer = tokenizers.Tokenizer(models.BPE(ids, merges))
    except ModelError:
        raise
    except Exception as error:  # the package raises no narrower one
        raise ModelError(
            "its {file} cannot be read: {why}", file=f"{VOCAB}, {MERGES}", why=str(error) or type(error).__name__
        ) from None
    adds_space = settings.get("add_prefix_space") is True
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=adds_space, use_regex=kind.pattern is None)
    if kind.pattern:
        words = pre_tokenizers.Split(tokenizers.Regex(kind.pattern), "isolated")
        byte_level = pre_tokenizers.Sequence([words, byte_level])
    tokenizer.pre_tokenizer, tokenizer.decoder = byte_level, decoders.ByteLevel()
    if kind.composes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([token for _token_id, token in sorted(added.items())])
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in filter(None, named.values())])
    beginning = [tokenizer.token_to_id(named["bos_token"])] if settings.get("add_bos_token") is True else []
    return _with_rows(tokenizer, vocab_size, ends, beginning)


def _read_settings(folder: Path) -> dict[str, Any]:
    """Return what `tokenizer_config.json` says, and of special tokens what `special_tokens_map.json` does, as
    transformers reads them."""
    settings, names = (
        {} if not (folder / file).exists() else read_json(folder / file) for file in (SETTINGS, SPECIALS)
    )
    return settings if "added_tokens_decoder" in settings else settings | names


def _class_of(folder: Path, settings: dict[str, Any]) -> _ByteLevelClass:
    model_type = read_json(folder / "config.json").get("model_type")
    name = settings.get("tokenizer_class") or _CLASS_OF_TYPE.get(model_type)
    known = _CLASSES.get(str(name).removesuffix("Fast"))
    if known is None:
        raise ModelError(
            "its {file} are a {kind}’s, and without a {wanted} only those of {known} are understood: transformers’ "
            "AutoTokenizer.from_pretrained(…).save_pretrained(…) makes one",
            file=f"{VOCAB}, {MERGES}",
            kind=name or model_type,
            wanted=TOKENIZER_JSON,
            known=", ".join(_CLASSES),
        )
    return known


def _added_tokens(folder: Path, settings: dict[str, Any], named: set[str]) -> dict[int, AddedToken]:
    """Return the tokens that were added to the vocabulary, by id."""
    if (listed := settings.get("added_tokens_decoder")) is not None:
        options = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return {
            int(token_id): AddedToken(token["content"], **{name: token[name] for name in options if name in token})
            for token_id, token in listed.items()
        }
    listed = read_json(folder / ADDED) if (folder / ADDED).exists() else {}
    extra = settings.get("additional_special_tokens") or settings.get("extra_special_tokens") or []
    special = named | set(map(_text_of, extra))
    return {
        int(token_id): AddedToken(text, normalized=text not in special, special=text in special)
        for text, token_id in listed.items()
    }


def _text_of(token: Any) -> str | None:
    """Return the text of a special token, which files name by its text or by an object that has it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _beginning(tokenizer: tokenizers.Tokenizer) -> list[int]:
    """Return the special tokens that the post-processor puts before a text."""
    pieces = filter(None, map(tokenizer.id_to_token, range(100)))
    for text in ("a", "0", *pieces) if tokenizer.post_processor else ():  # the first that has any tokens
        try:
            encoding = tokenizer.encode(text)
        except Exception:  # what the vocabulary lacks; the package raises no narrower one
            continue
        if 0 in encoding.special_tokens_mask:
            return encoding.ids[: encoding.special_tokens_mask.index(0)]
    return []


def _with_rows(
    tokenizer: tokenizers.Tokenizer, vocab_size: int, ends: Sequence[int], beginning: Sequence[int]
) -> PretrainedTokenizer:
    """Return the tokenizer without the ids that its model has no rows for: no text is encoded as one of them.

    Raises:
        ModelError: they are so many that the tokenizer must be another model's.
    """
    notes = []
    if beyond := {piece: token_id for piece, token_id in tokenizer.get_vocab().items() if token_id >= vocab_size}:
        added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        if len(beyond.keys() - added) > MOST_STRAY_PIECES * vocab_size:
            raise ModelError(
                "the tokenizer has {tokens} tokens, the model {known}",
                tokens=tokenizer.get_vocab_size(),
                known=vocab_size,
            )
        tokenizer = _without(tokenizer, beyond)
        some = ", ".join(sorted(beyond, key=beyond.__getitem__)[:5])
        some += ", …" * (len(beyond) > 5)
        notes.append(Note("tokens without a row in the embedding are never read or drawn: {tokens}", tokens=some))
    specials = [token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return PretrainedTokenizer(tokenizer, specials, beginning, ends, vocab_size, notes)


def _without(tokenizer: tokenizers.Tokenizer, pieces: dict[str, int]) -> tokenizers.Tokenizer:
    """Return a tokenizer that lacks some of the pieces; all others keep their ids."""
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] not in pieces]
    model = described["model"]
    if isinstance(model["vocab"], list):  # Unigram: pieces with their scores, in the order of the ids
        model["vocab"] = model["vocab"][: min(pieces.values())]
        model["unk_id"] = None if model["unk_id"] in pieces.values() else model["unk_id"]
    else:
        model["vocab"] = {piece: token_id for piece, token_id in model["vocab"].items() if piece not in pieces}
    if "merges" in model:
        mark = len(model["continuing_subword_prefix"] or "")
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        made = ((left, right, left + right[mark:]) for left, right in pairs)
        model["merges"] = [[left, right] for left, right, piece in made if not {left, right, piece} & pieces.keys()]
    kept = tokenizers.Tokenizer.from_str(json.dumps(described))
    if kept.get_vocab() != {
        piece: token_id for piece, token_id in tokenizer.get_vocab().items() if piece not in pieces
    }:
        raise ModelError(
            "the ids of its tokenizer are beyond the model’s {known}, and not the last",
            known=sum(1 for _ in kept.get_vocab()),
        )
    return kept
