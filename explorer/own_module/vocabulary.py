"""Read the vocabulary that somebody's module was trained with, in whichever form it was saved; no pickle is run."""

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

from explorer.language import N_, _
from explorer.own_module.own_tokenizer import BYTES, OwnTokenizer, longest_first
from explorer.own_module.running import first_line
from explorer.own_module.token_texts import SPECIAL, read_pairs, read_tokens
from explorer.state.errors import UserError
from model.checkpoint import is_checkpoint, load_checkpoint
from model.errors import ModelError
from model.merges import MergeRules
from model.notes import Note
from model.pretrained import llama2c
from model.pretrained.tokenizer import PretrainedTokenizer, write_visible_bytes
from model.pretrained.tokenizer_files import read_tokenizer_json
from model.tokenizer import Tokenizer

MAX_FILE_BYTES = 1 << 26
FILES = "tokenizer.json", "vocab.json", "vocab.pkl", "tokenizer.model", "tokenizer.tiktoken", "meta.pkl", "vocab.txt"
PATTERNS = {100256: "cl100k_base", 199998: "o200k_base", 128000: ""}  # tokens of files that other patterns go with
SENTENCEPIECE_BPE, NORMAL, BYTE_PIECE = 2, 1, 6


def read_vocabulary(place: str | Path, vocab_size: int) -> Any:
    """Read a tokenizer for a model of `vocab_size` ids.

    Args:
        place: a file, as tokenizer.json, vocab.json with merges.txt beside it, tokenizer.model, a tiktoken file, a
            pickle of plain data such as nanoGPT's meta.pkl, or a text of characters; a folder with one of them; the
            name of a checkpoint here; or of an encoding of tiktoken, such as gpt2.

    Raises:
        UserError: nothing is there, it cannot be read, or it has more tokens than the model.
    """
    path = Path(place)
    if path.is_dir():
        path = next((path / name for name in FILES if (path / name).is_file()), path)
        if path.is_dir():
            raise UserError(_("{folder} holds no vocabulary ({names}).", folder=path.name, names=", ".join(FILES)))
    if not path.is_file():
        return _by_name(str(place), vocab_size)
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
        return _padded(tokenizer, vocab_size, name)
    if name not in tiktoken.list_encoding_names():
        raise UserError(_("there is no file {path!r}", path=name))
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # it is downloaded where it was not before
        raise UserError(_("The encoding {name} cannot be had: {why}", name=name, why=first_line(error))) from error
    specials = {encoding.encode_single_token(text) for text in encoding.special_tokens_set}
    known = {*encoding._mergeable_ranks.values(), *specials}
    tokens = [encoding.decode_single_token_bytes(each) if each in known else b"" for each in range(encoding.n_vocab)]
    _check_size(name, tokens, specials, vocab_size)
    rules = MergeRules(encoding._mergeable_ranks)
    return OwnTokenizer(tokens, encoding.encode_ordinary, vocab_size, _below(specials, vocab_size), rules)


def _padded(tokenizer: Any, vocab_size: int, name: str) -> Any:
    """The tokenizer for a model that may have more ids."""
    if tokenizer.vocab_size == vocab_size:
        return tokenizer
    if isinstance(tokenizer, PretrainedTokenizer) and tokenizer.vocab_size < vocab_size:
        tokenizer.vocab_size = vocab_size
        return tokenizer
    tokens = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
    specials = set(tokenizer.special_tokens.values())
    _check_size(name, tokens, specials, vocab_size)
    return OwnTokenizer(tokens, tokenizer.encode, vocab_size, _below(specials, vocab_size), tokenizer.merge_rules)


def _below(ids: Iterable[int], vocab_size: int) -> set[int]:
    return {each for each in ids if each < vocab_size}


def _check_size(name: str, tokens: Sequence[bytes], specials: Collection[int], vocab_size: int) -> None:
    """Refuse a vocabulary that is not the model's: special tokens alone may lie beyond it."""
    ordinary = [each for each, token in enumerate(tokens) if token and each not in specials]
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
        if (other := _beside(path, "vocab", "encoder.json")) is None:
            raise _lacks(path, "vocab.json")
        return _read_file(other, vocab_size)
    text = content.decode("utf-8")
    if path.suffix != ".json":
        return _from_text(text, path, vocab_size)
    found = json.loads(text)
    if isinstance(found, dict) and isinstance(found.get("model"), dict):
        return read_tokenizer_json(path, vocab_size, ())
    return _from_data(found, path, vocab_size)


def _beside(path: Path, word: str, usual: str) -> Path | None:
    """The file beside a vocabulary's that is called as it is but for one word, or as usual."""
    stem = re.sub(r"vocab(?:ulary)?|merges", word, path.stem)
    names = [f"{each}{suffix}" for each in (stem, word) for suffix in (".json", ".txt", ".pkl")]
    files = [path.parent / name for name in (*names, usual)]
    return next((file for file in files if file.is_file() and file != path), None)


def _lacks(path: Path, other: str) -> UserError:
    return UserError(
        _("{file} needs {other} beside it: a byte-pair encoding is made of both.", file=path.name, other=other)
    )


class _DataUnpickler(pickle.Unpickler):
    """Makes plain data alone: no class and no function but those of plain data is ever looked up."""

    KNOWN: ClassVar[dict[tuple[str, str], Callable]] = {
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
        if (module, name) in self.KNOWN:
            return self.KNOWN[module, name]
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
        UserError: it holds anything else, which is not made.
    """
    return _DataUnpickler(io.BytesIO(content)).load()


def _from_data(found: Any, path: Path, vocab_size: int) -> OwnTokenizer:
    """Of a list of tokens, of a mapping between tokens and ids, or of a mapping that holds these by name."""
    merges = None
    if isinstance(found, tuple) and len(found) == 2:  # vocab, merges
        found, merges = found
    if isinstance(found, dict):
        merges = found.get("merges", merges) if not isinstance(found.get("merges"), int) else merges
        for name in ("itos", "stoi", "vocab", "id_to_token", "token_to_id", "encoder", "decoder", "chars"):
            if isinstance(found.get(name), dict | list | str) and len(found[name]) > 1:
                found = found[name]
                break
    table = _table(found, path.name)
    size = max(table, default=-1) + 1
    written = [table.get(token_id, "") for token_id in range(size)]
    if merges is None and any(len(token) > 1 for token in written):
        if other := _beside(path, "merges", "vocab.bpe"):
            merges = _read_merges(other)
        elif _is_pieces(written):
            raise _lacks(path, "merges.txt")
    read = read_tokens(written)
    tokens = read.tokens
    specials = {each for each, token in enumerate(tokens) if SPECIAL.fullmatch(token.decode(errors="replace"))}
    _check_size(path.name, tokens, specials, vocab_size)
    if merges is None:
        ordinary = [b"" if each in specials else token for each, token in enumerate(tokens)]
        made = OwnTokenizer(tokens, longest_first(ordinary), vocab_size, _below(specials, vocab_size))
        if any(len(token.decode(errors="replace")) > 1 for token in ordinary):
            made.note = Note(
                N_("{file} has no merges: a text is cut from the left, into the longest tokens"), file=path.name
            )
        return made
    pairs, lost = read_pairs(merges, read, path.name)
    made = _byte_pair_encoding(tokens, pairs, specials, vocab_size, is_ascii=bool(lost))
    if lost:
        made.note = Note(
            N_("{count} merges of {file} lost their bytes, which are no whole characters: only ASCII text can be read"),
            file=path.name,
            count=lost,
        )
    return made


def _table(found: Any, name: str) -> dict[int, Any]:
    """id -> token as it is written."""
    if isinstance(found, str | list | tuple):
        return dict(enumerate(found))
    if isinstance(found, dict):
        if all(type(value) is int for value in found.values()) and not all(type(token) is int for token in found):
            return {token_id: token for token, token_id in found.items()}
        try:
            return {int(token_id): token for token_id, token in found.items()}
        except (TypeError, ValueError):
            pass
    raise UserError(
        _(
            "{file} holds no vocabulary: a list of tokens, or a mapping between tokens and their ids, is wanted.",
            file=name,
        )
    )


def _is_pieces(written: Sequence[Any]) -> bool:
    """Whether tokens are pieces of a byte-pair encoding, which says nothing without its merges: bytes, or Ġ for
    spaces."""
    return any(not isinstance(token, str) or "Ġ" in token for token in written if len(token) > 1)


def _read_merges(path: Path) -> Any:
    if path.suffix in (".pkl", ".pickle"):
        return unpickle_data(path.read_bytes())
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def _from_minbpe(lines: Sequence[str], path: Path, vocab_size: int) -> OwnTokenizer:
    """Of Karpathy's minbpe: a pattern, special tokens with their ids, and pairs of ids."""
    pattern, count = lines[1], int(lines[2])
    specials = {int(token_id): text for text, token_id in (line.rsplit(" ", 1) for line in lines[3 : 3 + count])}
    tokens, pairs = [bytes([byte]) for byte in range(BYTES)], []
    for line in lines[3 + count :]:
        left, right = (tokens[int(each)] for each in line.split())
        pairs.append((left, right))
        tokens.append(left + right)
    tokens += [b""] * (max(specials, default=0) + 1 - len(tokens))
    for token_id, text in specials.items():
        tokens[token_id] = text.encode()
    _check_size(path.name, tokens, specials, vocab_size)
    return _byte_pair_encoding(tokens, pairs, specials, vocab_size, pattern)


def _byte_pair_encoding(
    tokens: Sequence[bytes],
    pairs: Sequence[tuple[bytes, bytes]],
    specials: Collection[int],
    vocab_size: int,
    pattern: str | None = None,
    is_ascii: bool = False,
) -> OwnTokenizer:
    """Make a byte-pair encoding.

    Args:
        pattern: that cuts texts; None for GPT-2's, which the course and nanoGPT have, "" for none.
        is_ascii: whether merges of other characters are not known.
    """
    ids = {token: each for each, token in reversed(list(enumerate(tokens))) if token and each not in specials}
    visible = {write_visible_bytes(token): token_id for token, token_id in ids.items()}
    merges = [(write_visible_bytes(left), write_visible_bytes(right)) for left, right in pairs]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=visible, merges=merges))
    cuts = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern:
        cuts.insert(0, tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(cuts)

    def encode(text: str) -> list[int]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return ids if text.isascii() or not is_ascii else []

    rules = MergeRules(ids, {pair: rank for rank, pair in reversed(list(enumerate(pairs)))})
    return OwnTokenizer(tokens, encode, vocab_size, _below(specials, vocab_size), rules)


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
    return _padded(Tokenizer.load(path), vocab_size, path.name)


def _from_text(text: str, path: Path, vocab_size: int) -> OwnTokenizer:
    """A token a line, or a text of which every different character is a token: which of them the model has as many of.

    Characters count in the order in which they are written where each is there once, else sorted, as nanoGPT does.
    """
    lines = text.removesuffix("\n").split("\n")
    once = text if len(set(text)) == len(text) else text.removesuffix("\n")
    ordered = [list(once)] if len(set(once)) == len(once) else []
    ways = [*ordered, sorted(set(text)), lines]
    for tokens in ways:
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
    """A byte-pair encoding of SentencePiece with bytes for what no piece has, as Llama's and those of llama2.c."""
    fields = list(_protobuf(content))
    pieces = [dict(_protobuf(value)) for number, value in fields if number == 1]
    trainer = dict(_protobuf(next((value for number, value in fields if number == 2), b"")))
    normalizer = dict(_protobuf(next((value for number, value in fields if number == 3), b"")))
    kinds = [piece.get(3, NORMAL) for piece in pieces]
    first = len(llama2c.SPECIALS)
    is_known = (
        trainer.get(3, 1) == SENTENCEPIECE_BPE
        and kinds[first : first + BYTES] == [BYTE_PIECE] * BYTES
        and normalizer.get(1, b"identity") == b"identity"
    )
    if not is_known:
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
        return _padded(llama2c.read_tokenizer(file, len(pieces)), vocab_size, path.name)


def _protobuf(content: bytes) -> Iterable[tuple[int, Any]]:
    """Number and value of each field of a message; ValueError where it is none."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(content):
                raise ValueError("it ends in the midst of a number")
            byte = content[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(content):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        length = {1: 8, 2: None, 5: 4}.get(kind, -1)
        length = varint() if length is None else length
        if length < 0 or at + length > len(content):
            raise ValueError(f"a field of {length} bytes at {at}")
        yield number, content[at : at + length]
        at += length
