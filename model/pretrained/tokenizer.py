"""Tokenizer of a pretrained model, from `tokenizer.json`, or else `vocab.json` and `merges.txt`."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from model.checkpoint_reader import MAX_TOKENIZER_BYTES, read_json, require_readable
from model.errors import LoadingNote, ModelError
from model.tokenizer import MergeRules, TokenizerBase, call_tokenizer_library, replace_surrogates

SPACE = "▁"  # SentencePiece's mark for a space
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for a byte alone
PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
# Byte-level pieces are written with a visible character a byte (Radford et al. 2019, `encoder.py`).
VISIBLE_TO_BYTE = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}
BYTE_TO_VISIBLE = {byte: character for character, byte in VISIBLE_TO_BYTE.items()}
PRIVATE = range(0xE000, 0xF900)  # characters for private use, that hardly any text has


class PretrainedTokenizer(TokenizerBase):
    """A pretrained model's tokenizer, run by the `tokenizers` package. Special tokens are never read from a text.

    Texts are joined as the package's decoder joins them. A special token stands for no text.

    Args:
        tokenizer: of the package. All its ids are below `vocab_size`.
        specials: ids of the special tokens.
        bos_ids: ids that the model expects before every text.
        eos_ids: ids that end a text.
        vocab_size: of the model, which may have more ids than there are pieces; None: the number of pieces.
        notes: on how its files were read.
        chat_template: of its chat model, in Jinja; None: it has none.
        special_names: name of special tokens in templates, such as "eos_token" -> text of the token.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        specials: Collection[int],
        bos_ids: Sequence[int] = (),
        eos_ids: Sequence[int] = (),
        vocab_size: int | None = None,
        notes: Sequence[LoadingNote] = (),
        chat_template: str | None = None,
        special_names: Mapping[str, str] | None = None,
    ):
        tokenizer.encode_special_tokens = True  # as text
        self._tokenizer = tokenizer
        self.vocab_size = vocab_size or tokenizer.get_vocab_size()
        self._specials = frozenset(
            token_id for token_id in specials if token_id < self.vocab_size and tokenizer.id_to_token(token_id)
        )
        self.bos_ids, self.eos_ids = (
            tuple(token_id for token_id in ids if 0 <= token_id < self.vocab_size) for ids in (bos_ids, eos_ids)
        )
        self.notes = tuple(notes)
        self.chat_template, self.special_names = chat_template, dict(special_names or {})
        self._decoder = [component["type"] for component in _components(tokenizer.decoder)]

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {self._tokenizer.id_to_token(token_id): token_id for token_id in sorted(self._specials)}

    @cached_property
    def adds_space(self) -> bool:
        """True if a text's first token includes a space that the tokenizer adds before the text."""
        try:
            letter = self.encode("a")
        except ModelError:  # a vocabulary of digits, say
            return False
        return bool(letter) and self.token_bytes(letter[0]).startswith(b" ")

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, with the space that some tokenizers add before it, and without `bos_ids`.

        Raises:
            ModelError: see `call_tokenizer_library`: a part of the text has no token, and there is no token for unknown
                text.
        """
        text = replace_surrogates(text)
        return call_tokenizer_library(self._tokenizer.encode, text, add_special_tokens=False).ids if text else []

    def encode_with_special_tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text in which the names of special tokens stand for these, as in a rendered chat.

        With them come the first character of each, and the one after its last.
        """
        text = replace_surrogates(text)
        encoding = call_tokenizer_library(self._special_reader.encode, text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    @cached_property
    def _special_reader(self) -> tokenizers.Tokenizer:
        reader = tokenizers.Tokenizer.from_str(self._tokenizer.to_str())
        reader.encode_special_tokens = False
        return reader

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of a text that continues another, without an added space; errors as in `encode`.

        If the space cannot be separated from the text's first token, it stays.
        """
        if not self.adds_space:
            return self.encode(text)
        if text.startswith(" "):
            return self.encode(text[1:])
        ids, prefix = self.encode(f"\n{text}"), b""
        for count, token_id in enumerate(ids, start=1):
            prefix += self.token_bytes(token_id)
            if prefix == b" \n":
                return ids[count:]
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids that begin a text, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        for token_id in ids:
            self._check_id(token_id)
        ordinary_ids = [token_id for token_id in ids if token_id not in self._specials]
        if self._decoder == ["ByteLevel"]:  # the package would read "é" that was added to the vocabulary as a byte
            return b"".join(map(self.token_bytes, ordinary_ids)).decode("utf-8", errors="replace")
        return call_tokenizer_library(self._tokenizer.decode, list(map(int, ordinary_ids))) if ordinary_ids else ""

    def decode_continuation(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
        """Return the text that ids add to the text of the ids `before`; errors as in `decode`.

        If `before` is empty, the first space is kept.
        """
        if not before:
            added = (b"" if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)
            return b"".join(added).decode("utf-8", errors="replace")
        text = self.decode([*before, *ids])
        return text[len(os.path.commonprefix([text, self.decode(before)])) :]  # may end within a character

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token adds within a text; a special token's name; b"" for an id without a piece.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        self._check_id(token_id)
        return self._all_bytes[token_id]

    def _check_id(self, token_id: int):
        if not isinstance(token_id, Integral) or not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")

    @cached_property
    def _all_bytes(self) -> list[bytes]:
        """`token_bytes` of every id."""
        pieces = [self._tokenizer.id_to_token(token_id) or "" for token_id in range(self.vocab_size)]
        # Tokens added to a byte-level vocabulary, such as two spaces, are matched in the text before it is split.
        is_byte_level = "ByteLevel" in self._decoder
        literal_ids = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if is_byte_level else ())}
        bytes_by_id, decoded = {}, {}
        for token_id, piece in enumerate(pieces):
            if token_id in literal_ids or not piece:
                bytes_by_id[token_id] = piece.encode()
            elif "ByteFallback" in self._decoder and (byte := BYTE.fullmatch(piece)):
                bytes_by_id[token_id] = bytes.fromhex(byte[1])
            elif is_byte_level and (data := decode_byte_level_piece(piece)) is not None:
                bytes_by_id[token_id] = data
            else:
                decoded[token_id] = piece
        texts = self._decode_within_text(list(decoded.values()))
        bytes_by_id |= {token_id: text.encode() for token_id, text in zip(decoded, texts, strict=True)}
        return [bytes_by_id[token_id] for token_id in range(self.vocab_size)]

    def _decode_within_text(self, pieces: list[str]) -> list[str]:
        """Return the text that each piece adds between others.

        For example "##ti" is "ti", and a word of a tokenizer that joins words by spaces has the space before it.
        """
        decoder = self._tokenizer.decoder
        decode = partial(call_tokenizer_library, decoder.decode) if decoder else " ".join
        all_characters = "".join(pieces)
        mark, other = islice((character for character in map(chr, PRIVATE) if character not in all_characters), 2)
        between = decode([mark, other]).removeprefix(mark).removesuffix(other)
        row = [text for piece in pieces for text in (mark, piece)]
        texts = decode([*row, mark]).removeprefix(mark).split(between + mark)[:-1]
        if len(texts) != len(pieces):  # a decoder that looks at more than one token
            texts = [decode([piece]) for piece in pieces]
        return texts

    @cached_property
    def merge_rules(self) -> MergeRules | None:
        """Merges of the byte-pair encoding, in order; None if the tokenizer is of another kind."""
        if not isinstance(self._tokenizer.model, tokenizers.models.BPE):
            return None
        model = json.loads(self._tokenizer.to_str())["model"]
        components = [*_components(self._tokenizer.normalizer), *_components(self._tokenizer.pre_tokenizer)]
        is_byte_level = "ByteLevel" in [*self._decoder, *(component["type"] for component in components)]
        space = next((component["replacement"] for component in components if component["type"] == "Metaspace"), SPACE)
        starts, ends = model["continuing_subword_prefix"], model["end_of_word_suffix"]

        def piece_to_bytes(piece: str) -> bytes:
            """Return a piece as bytes of a word, with a space for the mark of the word's beginning or end."""
            if is_byte_level and (data := decode_byte_level_piece(piece)) is not None:
                return data
            if byte := BYTE.fullmatch(piece):
                return bytes.fromhex(byte[1])
            if starts:
                piece = piece.removeprefix(starts) if piece.startswith(starts) else f" {piece}"
            if ends and piece.endswith(ends):
                piece = f"{piece.removesuffix(ends)} "
            return piece.replace(space, " ").encode()

        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        ranks = {(piece_to_bytes(left), piece_to_bytes(right)): rank for rank, (left, right) in enumerate(pairs)}
        # Single-byte fallback pieces take no part in merges: of two pieces with equal bytes, the other's id counts.
        pieces = sorted(model["vocab"].items(), key=lambda piece: BYTE.fullmatch(piece[0]) is None)
        literal_ids = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if is_byte_level else ())}
        ids = {piece_to_bytes(piece): token_id for piece, token_id in pieces if token_id not in literal_ids}
        marks = {"word_start": b" " if starts else b"", "word_end": b" " if ends else b""}
        return MergeRules(ids, ranks, is_character_level=not is_byte_level, **marks)

    def to_json(self) -> str:
        """Return a `tokenizer.json`; in it special tokens are handled as before they were read as text."""
        return self._tokenizer.to_str(pretty=True)

    def token_text(self, token_id: int) -> str:
        """Return a token's display text; "" for a piece that adds no text."""
        adds_nothing = not self.token_bytes(token_id) and self._tokenizer.id_to_token(token_id)
        return "" if adds_nothing else super().token_text(token_id)


def build_sentencepiece(
    pieces: Sequence[str],
    scores: Sequence[float],
    unknown: str | None,
    mergeable: Iterable[int],
    adds_space: bool = True,
) -> tokenizers.Tokenizer:
    """Return the tokenizer of a byte-pair vocabulary of SentencePiece, without special tokens.

    Of neighbouring pieces that together make a piece, those of the highest score are merged first.

    Args:
        pieces: by id.
        scores: of the pieces.
        unknown: piece for a character that has no piece, nor pieces of its bytes.
        mergeable: ids of pieces that merges make.
        adds_space: whether a space is added before a text.
    """
    ids = {piece: token_id for token_id, piece in reversed(list(enumerate(pieces)))}  # of equal ones the first counts
    pairs = [
        (-scores[token_id], token_id, pieces[token_id][:i], pieces[token_id][i:])
        for token_id in mergeable
        for i in range(1, len(pieces[token_id]))
        if pieces[token_id][:i] in ids and pieces[token_id][i:] in ids
    ]
    merges = [(left, right) for _score, _id, left, right in sorted(pairs)]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=merges, byte_fallback=True, unk_token=unknown))
    mark_spaces = normalizers.Replace(" ", SPACE)
    tokenizer.normalizer = normalizers.Sequence([*[normalizers.Prepend(SPACE)] * adds_space, mark_spaces])
    pieces_to_text = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*pieces_to_text, *[decoders.Strip(" ", 1, 0)] * adds_space])
    return tokenizer


def encode_byte_level_piece(token: bytes) -> str:
    """Return bytes as a piece of a byte-level vocabulary, one printable character per byte (as in GPT-2)."""
    return "".join(BYTE_TO_VISIBLE[byte] for byte in token)


def decode_byte_level_piece(piece: str) -> bytes | None:
    """Return the bytes of a piece of a byte-level vocabulary; None if it has other characters."""
    try:
        return bytes(map(VISIBLE_TO_BYTE.__getitem__, piece))
    except KeyError:
        return None


def _components(component: Any) -> Iterator[dict[str, Any]]:
    """Yield the description of a normalizer, pre-tokenizer or decoder, or of each component of a sequence, in order."""
    yield from _flatten(json.loads(component.__getstate__()) if component else None)


def _flatten(description: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if not description:
        return
    sequence = next(
        (description[name] for name in ("normalizers", "pretokenizers", "decoders") if name in description), None
    )
    if sequence is None:
        yield description
    else:
        for component in sequence:
            yield from _flatten(component)


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


class WordSplit(NamedTuple):
    """Preparation of a text by a byte-level tokenizer.

    Attributes:
        pattern: of words; None: GPT-2's.
        splits_digits: whether each digit is a word.
        applies_nfc: whether texts are normalised to composed characters (Unicode's NFC) first.
        ignores_merges: whether a word that is a piece is not made by merges.
        adds_bos: whether the model expects a token before every text, if the file does not say.
    """

    pattern: str | None = None
    splits_digits: bool = False
    applies_nfc: bool = False
    ignores_merges: bool = False
    adds_bos: bool = False

    def apply(self, tokenizer: tokenizers.Tokenizer, adds_space: bool = False) -> None:
        """Set the steps of a byte-level tokenizer before and after its merges."""
        steps = [pre_tokenizers.Digits(individual_digits=True)] if self.splits_digits else []
        if self.pattern:
            steps.append(pre_tokenizers.Split(tokenizers.Regex(self.pattern), "isolated"))
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=adds_space, use_regex=self.pattern is None))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
        tokenizer.decoder = decoders.ByteLevel()
        if self.applies_nfc:
            tokenizer.normalizer = normalizers.NFC()


_GPT2_NAMES = {"bos_token": END, "eos_token": END, "unk_token": END}
_CLASSES = {  # tokenizer class of transformers -> default special tokens, if no file names them, and its words
    "GPT2Tokenizer": (_GPT2_NAMES, WordSplit()),
    "CodeGenTokenizer": (_GPT2_NAMES, WordSplit()),
    "GPTNeoXTokenizer": (_GPT2_NAMES | {"pad_token": "<|padding|>"}, WordSplit(applies_nfc=True)),
    "Qwen2Tokenizer": (
        {"eos_token": END, "unk_token": END, "pad_token": END},
        WordSplit(QWEN_PATTERN, applies_nfc=True),
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
    defaults, word_split = _find_class(folder, settings)
    special_tokens = {name: _token_text(settings.get(name, defaults.get(name))) for name in SPECIAL_TOKEN_KEYS}
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
    word_split.apply(tokenizer, settings.get("add_prefix_space") is True)
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


def _find_class(folder: Path, settings: dict[str, Any]) -> tuple[dict[str, str], WordSplit]:
    """Return special tokens and words of the folder's tokenizer class; ModelError if it is not supported."""
    model_type = read_json(folder / "config.json").get("model_type")
    name = settings.get("tokenizer_class") or _DEFAULT_CLASSES.get(model_type)
    class_name = str(name).removesuffix("Fast")
    if class_name not in _CLASSES:
        raise ModelError(
            "its {file} are a {kind}’s, and without a {wanted} only those of {known} are understood: transformers’ "
            "AutoTokenizer.from_pretrained(…).save_pretrained(…) makes one",
            file=f"{VOCAB}, {MERGES}",
            kind=name or model_type,
            wanted=TOKENIZER_JSON,
            known=", ".join(_CLASSES),
        )
    return _CLASSES[class_name]


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


def read_special_names(folder: Path) -> dict[str, str]:
    """Return name -> text of a folder's special tokens, as chat templates call them."""
    settings = _read_settings(folder)
    return {name: text for name in SPECIAL_TOKEN_KEYS if (text := _token_text(settings.get(name)))}


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
        notes.append(
            LoadingNote("tokens without a row in the embedding are never read or drawn: {tokens}", tokens=examples)
        )
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
