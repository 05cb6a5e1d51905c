"""Reader of a pretrained model's tokenizer files: `tokenizer.json`, or else `vocab.json` and `merges.txt`."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from model.checkpoint_reader import MAX_TOKENIZER_BYTES, read_json, require_readable
from model.errors import ModelError, Note
from model.pretrained.tokenizer import PretrainedTokenizer

TOKENIZER_JSON, VOCAB, MERGES = "tokenizer.json", "vocab.json", "merges.txt"
SETTINGS, SPECIALS, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
TOKENIZER_FILES = (TOKENIZER_JSON, VOCAB, MERGES, SETTINGS, SPECIALS, ADDED)
TOKENIZER_FILE_PATTERN = re.compile(r"(?i)token|vocab|merges|spiece|sentencepiece|\.(model|spm|tiktoken)$")
SPECIAL_TOKEN_KEYS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
END = "<|endoftext|>"
MAX_STRAY_FRACTION = 1 / 8  # of the model's vocabulary: with more beyond it, the tokenizer is another model's

# How Qwen 2 cuts a text into words (https://huggingface.co/Qwen/Qwen2-7B/blob/main/tokenizer.json).
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class _ByteLevelClass(NamedTuple):
    """Settings with which a tokenizer class of transformers reads `vocab.json` and `merges.txt`.

    Attributes:
        special_tokens: default special tokens, if no file names them.
        applies_nfc: whether texts are normalised to composed characters (Unicode's NFC) first.
        pattern: of the words that a text is split into; None: GPT-2's.
    """

    special_tokens: dict[str, str]
    applies_nfc: bool = False
    pattern: str | None = None


_GPT2_NAMES = {"bos_token": END, "eos_token": END, "unk_token": END}
_CLASSES = {
    "GPT2Tokenizer": _ByteLevelClass(_GPT2_NAMES),
    "CodeGenTokenizer": _ByteLevelClass(_GPT2_NAMES),
    "GPTNeoXTokenizer": _ByteLevelClass(_GPT2_NAMES | {"pad_token": "<|padding|>"}, applies_nfc=True),
    "Qwen2Tokenizer": _ByteLevelClass(
        {"eos_token": END, "unk_token": END, "pad_token": END}, applies_nfc=True, pattern=QWEN_PATTERN
    ),
}
_DEFAULT_CLASSES = {  # model_type -> tokenizer class if the files name none
    "gpt2": "GPT2Tokenizer",
    "gpt_neo": "GPT2Tokenizer",
    "opt": "GPT2Tokenizer",
    "phi": "CodeGenTokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
}


def read_tokenizer(folder: Path, vocab_size: int, eos_ids: Sequence[int]) -> PretrainedTokenizer:
    """Read the tokenizer of a folder from `tokenizer.json`, or else from `vocab.json` and `merges.txt`.

    Args:
        vocab_size: of its model. Ids beyond it are dropped.
        eos_ids: ids that end a text.

    Raises:
        ModelError: there are no such files, or one cannot be read, or they are another model's.
    """
    if (folder / TOKENIZER_JSON).exists():
        return read_tokenizer_json(folder / TOKENIZER_JSON, vocab_size, eos_ids)
    if (folder / VOCAB).exists() and (folder / MERGES).exists():
        return _read_vocab_and_merges(folder, vocab_size, eos_ids)
    file_names = sorted(path.name for path in folder.iterdir() if TOKENIZER_FILE_PATTERN.search(path.name))
    raise ModelError(
        "its tokenizer must be in {wanted} or in {others}, found {found}: transformers’ "
        "AutoTokenizer.from_pretrained(…).save_pretrained(…) converts most others to {wanted}",
        wanted=TOKENIZER_JSON,
        others=f"{VOCAB} + {MERGES}",
        found=", ".join(file_names) or "–",
    )


def read_tokenizer_json(path: Path, vocab_size: int, eos_ids: Sequence[int]) -> PretrainedTokenizer:
    """Read the tokenizer of a `tokenizer.json`; see `read_tokenizer`."""
    try:
        content = require_readable(path, MAX_TOKENIZER_BYTES).read_text(encoding="utf-8")
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
    return _drop_ids_without_rows(tokenizer, vocab_size, eos_ids, _find_bos_ids(tokenizer))


def _read_vocab_and_merges(folder: Path, vocab_size: int, eos_ids: Sequence[int]) -> PretrainedTokenizer:
    for name in (VOCAB, MERGES):
        require_readable(folder / name, MAX_TOKENIZER_BYTES)
    settings = _read_settings(folder)
    kind = _find_class(folder, settings)
    special_tokens = {
        name: _token_text(settings.get(name, kind.special_tokens.get(name))) for name in SPECIAL_TOKEN_KEYS
    }
    try:
        ids, merges = models.BPE.read_file(str(folder / VOCAB), str(folder / MERGES))
        added = _added_tokens(folder, settings, {text for text in special_tokens.values() if text})
        for token_id, token in added.items():
            ids.setdefault(token.content, token_id)
        for text in filter(None, special_tokens.values()):
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
        word_splitter = pre_tokenizers.Split(tokenizers.Regex(kind.pattern), "isolated")
        byte_level = pre_tokenizers.Sequence([word_splitter, byte_level])
    tokenizer.pre_tokenizer, tokenizer.decoder = byte_level, decoders.ByteLevel()
    if kind.applies_nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([token for _token_id, token in sorted(added.items())])
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in filter(None, special_tokens.values())])
    bos_ids = [tokenizer.token_to_id(special_tokens["bos_token"])] if settings.get("add_bos_token") is True else []
    return _drop_ids_without_rows(tokenizer, vocab_size, eos_ids, bos_ids)


def _read_settings(folder: Path) -> dict[str, Any]:
    """Return the fields of `tokenizer_config.json` and, as in transformers, of `special_tokens_map.json`."""
    settings, names = (
        {} if not (folder / file).exists() else read_json(folder / file) for file in (SETTINGS, SPECIALS)
    )
    return settings if "added_tokens_decoder" in settings else settings | names


def _find_class(folder: Path, settings: dict[str, Any]) -> _ByteLevelClass:
    """Return the settings of the folder's tokenizer class; ModelError if it is not supported."""
    model_type = read_json(folder / "config.json").get("model_type")
    name = settings.get("tokenizer_class") or _DEFAULT_CLASSES.get(model_type)
    byte_level_class = _CLASSES.get(str(name).removesuffix("Fast"))
    if byte_level_class is None:
        raise ModelError(
            "its {file} are a {kind}’s, and without a {wanted} only those of {known} are understood: transformers’ "
            "AutoTokenizer.from_pretrained(…).save_pretrained(…) makes one",
            file=f"{VOCAB}, {MERGES}",
            kind=name or model_type,
            wanted=TOKENIZER_JSON,
            known=", ".join(_CLASSES),
        )
    return byte_level_class


def _added_tokens(folder: Path, settings: dict[str, Any], special_texts: set[str]) -> dict[int, AddedToken]:
    """Return the tokens that were added to the vocabulary, by id."""
    if (entries := settings.get("added_tokens_decoder")) is not None:
        options = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return {
            int(token_id): AddedToken(token["content"], **{name: token[name] for name in options if name in token})
            for token_id, token in entries.items()
        }
    entries = read_json(folder / ADDED) if (folder / ADDED).exists() else {}
    extra = settings.get("additional_special_tokens") or settings.get("extra_special_tokens") or []
    special = special_texts | set(map(_token_text, extra))
    return {
        int(token_id): AddedToken(text, normalized=text not in special, special=text in special)
        for text, token_id in entries.items()
    }


def _token_text(token: Any) -> str | None:
    """Return the text of a special token, which files give as a text or as an object with `content`."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _find_bos_ids(tokenizer: tokenizers.Tokenizer) -> list[int]:
    """Return the special tokens that the post-processor adds before a text."""
    pieces = filter(None, map(tokenizer.id_to_token, range(100)))
    for text in ("a", "0", *pieces) if tokenizer.post_processor else ():  # the first that has any tokens
        try:
            encoding = tokenizer.encode(text)
        except Exception:  # what the vocabulary lacks; the package raises no narrower one
            continue
        if 0 in encoding.special_tokens_mask:
            return encoding.ids[: encoding.special_tokens_mask.index(0)]
    return []


def _drop_ids_without_rows(
    tokenizer: tokenizers.Tokenizer, vocab_size: int, eos_ids: Sequence[int], bos_ids: Sequence[int]
) -> PretrainedTokenizer:
    """Return the tokenizer without ids that have no row in the model's embedding: no text is encoded as one of them.

    Raises:
        ModelError: there are so many that the tokenizer must be another model's.
    """
    notes = []
    if beyond := {piece: token_id for piece, token_id in tokenizer.get_vocab().items() if token_id >= vocab_size}:
        added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        if len(beyond.keys() - added) > MAX_STRAY_FRACTION * vocab_size:
            raise ModelError(
                "the tokenizer has {tokens} tokens, the model {known}",
                tokens=tokenizer.get_vocab_size(),
                known=vocab_size,
            )
        tokenizer = _remove_pieces(tokenizer, beyond)
        examples = ", ".join(sorted(beyond, key=beyond.__getitem__)[:5])
        examples += ", …" * (len(beyond) > 5)
        notes.append(Note("tokens without a row in the embedding are never read or drawn: {tokens}", tokens=examples))
    specials = [token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return PretrainedTokenizer(tokenizer, specials, bos_ids, eos_ids, vocab_size, notes)


def _remove_pieces(tokenizer: tokenizers.Tokenizer, pieces: dict[str, int]) -> tokenizers.Tokenizer:
    """Return a copy of a tokenizer without some of its pieces; all others keep their ids."""
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = [token for token in description["added_tokens"] if token["content"] not in pieces]
    model = description["model"]
    if isinstance(model["vocab"], list):  # Unigram: pieces with their scores, in the order of the ids
        model["vocab"] = model["vocab"][: min(pieces.values())]
        model["unk_id"] = None if model["unk_id"] in pieces.values() else model["unk_id"]
    else:
        model["vocab"] = {piece: token_id for piece, token_id in model["vocab"].items() if piece not in pieces}
    if "merges" in model:
        mark = len(model["continuing_subword_prefix"] or "")
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        merged = ((left, right, left + right[mark:]) for left, right in pairs)
        model["merges"] = [[left, right] for left, right, piece in merged if not {left, right, piece} & pieces.keys()]
    reduced = tokenizers.Tokenizer.from_str(json.dumps(description))
    if reduced.get_vocab() != {
        piece: token_id for piece, token_id in tokenizer.get_vocab().items() if piece not in pieces
    }:
        raise ModelError(
            "its tokenizer has ids beyond the model’s {known} tokens that are not the last ones",
            known=sum(1 for _ in reduced.get_vocab()),
        )
    return reduced
