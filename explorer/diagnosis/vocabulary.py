"""Read the vocabulary of a user's module in any common file format; no pickled code is run."""

import base64
import binascii
import io
import json
import pickle
import re
import struct
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tiktoken
import tokenizers

from explorer.diagnosis.custom_tokenizer import (
    BYTES,
    SPECIAL,
    CustomTokenizer,
    decode_merges,
    decode_tokens,
    greedy_encoder,
)
from explorer.diagnosis.run_module import first_line
from explorer.errors import UserError
from explorer.translations import N_, _
from model.checkpoint import is_checkpoint, load_checkpoint
from model.errors import LoadingNote, ModelError
from model.pretrained import llama2c
from model.pretrained.tokenizer import PretrainedTokenizer, encode_byte_level_piece, read_tokenizer_json
from model.tokenizer import MergeRules, Tokenizer

MAX_FILE_BYTES = 1 << 26
FILES = "tokenizer.json", "vocab.json", "vocab.pkl", "tokenizer.model", "tokenizer.tiktoken", "meta.pkl", "vocab.txt"
PATTERNS = {100256: "cl100k_base", 199998: "o200k_base", 128000: ""}  # tokens of files that other patterns go with
SENTENCEPIECE_BPE, NORMAL, BYTE_PIECE = 2, 1, 6


def read_vocabulary(source: str | Path, vocab_size: int) -> Any:
    """Read a tokenizer for a model of `vocab_size` ids.

    Args:
        source: a file, such as tokenizer.json, vocab.json with merges.txt in its folder, tokenizer.model, a
            tiktoken file, a pickle of plain data such as nanoGPT's meta.pkl, or a text of characters; a folder with
            one of them; the name of a local checkpoint; or of an encoding of tiktoken, such as gpt2.

    Raises:
        UserError: there is no such source, it cannot be read, or it has more tokens than the model.
    """
    path = Path(source)
    if path.is_dir():
        path = next((path / name for name in FILES if (path / name).is_file()), path)
        if path.is_dir():
            raise UserError(_("{folder} holds no vocabulary ({names}).", folder=path.name, names=", ".join(FILES)))
    if not path.is_file():
        return _by_name(str(source), vocab_size)
    if path.stat().st_size > MAX_FILE_BYTES:
        raise UserError(_("{file} is too large for a vocabulary.", file=path.name))
    try:
        return _read_file(path, vocab_size)
    except UserError:
        raise
    except Exception as error:  # a file can be damaged in ways that no list of errors has
        why = f"{type(error).__name__}: {first_line(error)}" if not isinstance(error, ModelError) else first_line(error)
        raise UserError(_("{file} holds no vocabulary that can be read: {why}", file=path.name, why=why)) from error


def _by_name(name: str, vocab_size: int) -> Any:
    if is_checkpoint(name):
        tokenizer = load_checkpoint(name)[1]
        return _pad_vocabulary(tokenizer, vocab_size, name)
    if name not in tiktoken.list_encoding_names():
        raise UserError(_("there is no file {path!r}", path=name))
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # it is downloaded where it was not before
        raise UserError(_("The encoding {name} cannot be had: {why}", name=name, why=first_line(error))) from error
    specials = {encoding.encode_single_token(text) for text in encoding.special_tokens_set}
    known_ids = {*encoding._mergeable_ranks.values(), *specials}
    tokens = [
        encoding.decode_single_token_bytes(token_id) if token_id in known_ids else b""
        for token_id in range(encoding.n_vocab)
    ]
    _check_size(name, tokens, specials, vocab_size)
    rules = MergeRules(encoding._mergeable_ranks)
    return CustomTokenizer(tokens, encoding.encode_ordinary, vocab_size, specials, rules)


def _pad_vocabulary(tokenizer: Any, vocab_size: int, name: str) -> Any:
    """Return the tokenizer with the model's `vocab_size`, which may be larger."""
    if tokenizer.vocab_size == vocab_size:
        return tokenizer
    if isinstance(tokenizer, PretrainedTokenizer) and tokenizer.vocab_size < vocab_size:
        tokenizer.vocab_size = vocab_size
        return tokenizer
    tokens = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
    specials = set(tokenizer.special_tokens.values())
    _check_size(name, tokens, specials, vocab_size)
    return CustomTokenizer(tokens, tokenizer.encode, vocab_size, specials, tokenizer.merge_rules)


def _check_size(name: str, tokens: Sequence[bytes], specials: Collection[int], vocab_size: int) -> None:
    """Raise a UserError unless all tokens but special ones are below `vocab_size`."""
    ordinary = [token_id for token_id, token in enumerate(tokens) if token and token_id not in specials]
    if max(ordinary, default=-1) >= vocab_size:
        raise UserError(
            _(
                "{file} has {tokens} tokens and the model {size}: it is the vocabulary of another model.",
                file=name,
                tokens=len(tokens),
                size=vocab_size,
            )
        )


def _read_file(path: Path, vocab_size: int) -> Any:
    content = path.read_bytes()
    if path.suffix in (".pkl", ".pickle") and "merges" not in path.stem:
        return _from_data(unpickle_data(content), path, vocab_size)
    if _is_tiktoken(content):
        return _from_tiktoken(path, vocab_size)
    if path.suffix == ".bin":
        return llama2c.read_tokenizer(path, vocab_size)
    if content.startswith(b"minbpe v1"):
        return _from_minbpe(content.decode("utf-8").splitlines(), path, vocab_size)
    if path.suffix in (".model", ".spm"):
        return _from_sentencepiece(content, path, vocab_size)
    if "merges" in path.stem or path.suffix == ".bpe":
        if (vocabulary_file := _sibling_file(path, "vocab", "encoder.json")) is None:
            raise _missing_file_error(path, "vocab.json")
        return _read_file(vocabulary_file, vocab_size)
    text = content.decode("utf-8")
    if path.suffix != ".json":
        return _from_text(text, path, vocab_size)
    data = json.loads(text)
    if isinstance(data, dict) and isinstance(data.get("model"), dict):
        return read_tokenizer_json(path, vocab_size, ())
    return _from_data(data, path, vocab_size)


def _sibling_file(path: Path, word: str, fallback: str) -> Path | None:
    """Return the file in a vocabulary's folder with the same name but for one word, or the fallback; None for none."""
    stem = re.sub(r"vocab(?:ulary)?|merges", word, path.stem)
    names = [f"{sibling_stem}{suffix}" for sibling_stem in (stem, word) for suffix in (".json", ".txt", ".pkl")]
    files = [path.parent / name for name in (*names, fallback)]
    return next((file for file in files if file.is_file() and file != path), None)


def _missing_file_error(path: Path, missing: str) -> UserError:
    return UserError(
        _("{file} needs {other} beside it: a byte-pair encoding is made of both.", file=path.name, other=missing)
    )


class _DataUnpickler(pickle.Unpickler):
    """An unpickler for plain data only: no other class or function is looked up."""

    ALLOWED_CLASSES: ClassVar[dict[tuple[str, str], Callable]] = {
        ("_codecs", "encode"): lambda text, _encoding="latin1": text.encode("latin-1"),  # bytes in old pickles
        ("collections", "OrderedDict"): dict,
        ("collections", "defaultdict"): lambda *_factory: {},
        ("collections", "Counter"): dict,
        ("builtins", "set"): set,
        ("builtins", "frozenset"): frozenset,
        ("builtins", "bytes"): bytes,
        ("builtins", "bytearray"): bytes,
        **{("builtins", name): lambda *_arguments: None for name in ("int", "str", "list", "dict", "bool")},
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.ALLOWED_CLASSES:
            return self.ALLOWED_CLASSES[module, name]
        raise UserError(
            _(
                "The pickle holds {name}, which cannot be read without running its code: save the vocabulary as JSON, "
                "with json.dump.",
                name=f"{module}.{name}",
            )
        )


def unpickle_data(content: bytes) -> Any:
    """Read a pickle of dictionaries, lists, texts, bytes and numbers.

    Raises:
        UserError: it holds anything else, which is not created.
    """
    return _DataUnpickler(io.BytesIO(content)).load()


def _from_data(data: Any, path: Path, vocab_size: int) -> CustomTokenizer:
    """Make a tokenizer from a list of tokens, a mapping between tokens and ids, or a mapping that has these by name."""
    merges = None
    if isinstance(data, tuple) and len(data) == 2:  # vocab, merges
        data, merges = data
    if isinstance(data, dict):
        merges = data.get("merges", merges) if not isinstance(data.get("merges"), int) else merges
        for name in ("itos", "stoi", "vocab", "id_to_token", "token_to_id", "encoder", "decoder", "chars"):
            if isinstance(data.get(name), dict | list | str) and len(data[name]) > 1:
                data = data[name]
                break
    table = _tokens_by_id(data, path.name)
    size = max(table, default=-1) + 1
    raw_tokens = [table.get(token_id, "") for token_id in range(size)]
    if merges is None and any(len(token) > 1 for token in raw_tokens):
        if merges_file := _sibling_file(path, "merges", "vocab.bpe"):
            merges = _read_merges(merges_file)
        elif _are_bpe_pieces(raw_tokens):
            raise _missing_file_error(path, "merges.txt")
    vocabulary = decode_tokens(raw_tokens)
    tokens = vocabulary.tokens
    specials = {index for index, token in enumerate(tokens) if SPECIAL.fullmatch(token.decode(errors="replace"))}
    _check_size(path.name, tokens, specials, vocab_size)
    if merges is None:
        ordinary = [b"" if index in specials else token for index, token in enumerate(tokens)]
        tokenizer = CustomTokenizer(tokens, greedy_encoder(ordinary), vocab_size, specials)
        if any(len(token.decode(errors="replace")) > 1 for token in ordinary):
            tokenizer.note = LoadingNote(
                N_("{file} has no merges: a text is cut from the left, into the longest tokens"), file=path.name
            )
        return tokenizer
    pairs, lost = decode_merges(merges, vocabulary, path.name)
    tokenizer = _make_bpe_tokenizer(tokens, pairs, specials, vocab_size, is_ascii=bool(lost))
    if lost:
        tokenizer.note = LoadingNote(
            N_("{count} merges of {file} lost their bytes, which are no whole characters: only ASCII text can be read"),
            file=path.name,
            count=lost,
        )
    return tokenizer


def _tokens_by_id(data: Any, name: str) -> dict[int, Any]:
    """Return id -> token, not yet decoded."""
    if isinstance(data, str | list | tuple):
        return dict(enumerate(data))
    if isinstance(data, dict):
        if all(type(value) is int for value in data.values()) and not all(type(token) is int for token in data):
            return {token_id: token for token, token_id in data.items()}
        try:
            return {int(token_id): token for token_id, token in data.items()}
        except (TypeError, ValueError):
            pass
    raise UserError(
        _(
            "{file} holds no vocabulary: a list of tokens, or a mapping between tokens and their ids, is wanted.",
            file=name,
        )
    )


def _are_bpe_pieces(raw_tokens: Sequence[Any]) -> bool:
    """Return whether tokens are pieces of a byte-pair encoding, which needs its merges: bytes, or Ġ for spaces."""
    return any(not isinstance(token, str) or "Ġ" in token for token in raw_tokens if len(token) > 1)


def _read_merges(path: Path) -> Any:
    if path.suffix in (".pkl", ".pickle"):
        return unpickle_data(path.read_bytes())
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def _from_minbpe(lines: Sequence[str], path: Path, vocab_size: int) -> CustomTokenizer:
    """Read a file of Karpathy's minbpe: a pattern, special tokens with their ids, and pairs of ids."""
    pattern, count = lines[1], int(lines[2])
    specials = {int(token_id): text for text, token_id in (line.rsplit(" ", 1) for line in lines[3 : 3 + count])}
    tokens, pairs = [bytes([byte]) for byte in range(BYTES)], []
    for line in lines[3 + count :]:
        left, right = (tokens[int(part)] for part in line.split())
        pairs.append((left, right))
        tokens.append(left + right)
    tokens += [b""] * (max(specials, default=0) + 1 - len(tokens))
    for token_id, text in specials.items():
        tokens[token_id] = text.encode()
    _check_size(path.name, tokens, specials, vocab_size)
    return _make_bpe_tokenizer(tokens, pairs, specials, vocab_size, pattern)


def _make_bpe_tokenizer(
    tokens: Sequence[bytes],
    pairs: Sequence[tuple[bytes, bytes]],
    specials: Collection[int],
    vocab_size: int,
    pattern: str | None = None,
    is_ascii: bool = False,
) -> CustomTokenizer:
    """Make a byte-pair encoding.

    Args:
        pattern: splits texts; None for GPT-2's, which the course and nanoGPT use, "" for none.
        is_ascii: whether only ASCII texts can be encoded, as merges of other characters are unknown.
    """
    ids = {token: index for index, token in reversed(list(enumerate(tokens))) if token and index not in specials}
    visible = {encode_byte_level_piece(token): token_id for token, token_id in ids.items()}
    merges = [(encode_byte_level_piece(left), encode_byte_level_piece(right)) for left, right in pairs]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=visible, merges=merges))
    pre_tokenizers = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern:
        pre_tokenizers.insert(0, tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(pre_tokenizers)

    def encode(text: str) -> list[int]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return ids if text.isascii() or not is_ascii else []

    rules = MergeRules(ids, {pair: rank for rank, pair in reversed(list(enumerate(pairs)))})
    return CustomTokenizer(tokens, encode, vocab_size, specials, rules)


def _is_tiktoken(content: bytes) -> bool:
    first, _newline, _rest = content.partition(b"\n")
    parts = first.split()
    if len(parts) != 2 or not parts[1].isdigit():
        return False
    try:
        return bool(base64.b64decode(parts[0], validate=True))
    except binascii.Error:
        return False


def _from_tiktoken(path: Path, vocab_size: int) -> Any:
    lines = [line.split() for line in path.read_bytes().splitlines() if line.strip()]
    if len(lines) in PATTERNS:
        raise UserError(
            _(
                "{file} has {count} tokens, and its texts are cut by a pattern that it does not say: give {name}.",
                file=path.name,
                count=len(lines),
                name=f"--tokenizer {PATTERNS[len(lines)]}" if PATTERNS[len(lines)] else "tokenizer.json",
            )
        )
    return _pad_vocabulary(Tokenizer.load(path), vocab_size, path.name)


def _from_text(text: str, path: Path, vocab_size: int) -> CustomTokenizer:
    """Read a token per line, or a text whose distinct characters are the tokens: whichever fits the vocab size.

    Characters are in the order of the text if each occurs once, else sorted, as in nanoGPT.
    """
    lines = text.removesuffix("\n").split("\n")
    once = text if len(set(text)) == len(text) else text.removesuffix("\n")
    ordered = [list(once)] if len(set(once)) == len(once) else []
    vocabularies = [*ordered, sorted(set(text)), lines]
    for tokens in vocabularies:
        if len(tokens) == vocab_size and len(set(tokens)) == len(tokens):
            return _from_data(tokens, path, vocab_size)
    raise UserError(
        _(
            "{file} has {characters} different characters in {lines} lines, and the model {size} tokens: it is not its "
            "vocabulary.",
            file=path.name,
            characters=len(set(text)),
            lines=len(lines),
            size=vocab_size,
        )
    )


def _from_sentencepiece(content: bytes, path: Path, vocab_size: int) -> Any:
    """Read a SentencePiece byte-pair encoding with byte fallback, such as Llama's and llama2.c's."""
    fields = list(_protobuf_fields(content))
    pieces = [dict(_protobuf_fields(value)) for number, value in fields if number == 1]
    trainer = dict(_protobuf_fields(next((value for number, value in fields if number == 2), b"")))
    normalizer = dict(_protobuf_fields(next((value for number, value in fields if number == 3), b"")))
    kinds = [piece.get(3, NORMAL) for piece in pieces]
    first = len(llama2c.SPECIALS)
    is_supported = (
        trainer.get(3, 1) == SENTENCEPIECE_BPE
        and kinds[first : first + BYTES] == [BYTE_PIECE] * BYTES
        and normalizer.get(1, b"identity") == b"identity"
    )
    if not is_supported:
        raise UserError(
            _(
                "{file} is a SentencePiece vocabulary of a kind that is not read here: convert it to tokenizer.json, "
                "with transformers’ AutoTokenizer.from_pretrained(…).save_pretrained(…).",
                file=path.name,
            )
        )
    if len(pieces) > vocab_size:
        _check_size(path.name, [b"?"] * len(pieces), (), vocab_size)
    with tempfile.TemporaryDirectory() as folder:  # in the form in which llama2.c keeps it
        texts = [piece[1].decode().replace(llama2c.SPACE, " ").encode() for piece in pieces]
        scores = [struct.unpack("<f", piece.get(2, bytes(4)))[0] for piece in pieces]
        packed = [llama2c.PIECE.pack(score, len(text)) + text for score, text in zip(scores, texts, strict=True)]
        file = Path(folder) / path.name
        file.write_bytes(struct.pack("<i", max(map(len, texts))) + b"".join(packed))
        return _pad_vocabulary(llama2c.read_tokenizer(file, len(pieces)), vocab_size, path.name)


def _protobuf_fields(content: bytes) -> Iterable[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message.

    Raises:
        ValueError: it is no message.
    """
    offset = 0

    def varint() -> int:
        nonlocal offset
        value = shift = 0
        while True:
            if offset >= len(content):
                raise ValueError("it ends in the midst of a number")
            byte = content[offset]
            offset, value, shift = offset + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while offset < len(content):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        length = {1: 8, 2: None, 5: 4}.get(kind, -1)
        length = varint() if length is None else length
        if length < 0 or offset + length > len(content):
            raise ValueError(f"a field of {length} bytes at {offset}")
        yield number, content[offset : offset + length]
        offset += length
