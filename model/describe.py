"""Description of a model's files, without opening the model: `python -m model.describe PATH`."""

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.checkpoint import CheckpointError, check_links, find_base_model, find_checkpoint, is_gguf, is_llama2c
from model.checkpoint_reader import TOKENIZER, is_missing, open_weights, read_config, read_json
from model.config import ModelConfig, num_parameters
from model.errors import LoadingNote, ModelError
from model.gguf import gguf_loader
from model.gguf.gguf_file import GGUFHeader, read_header
from model.gguf.gguf_tokenizer import read_gguf_tokenizer
from model.pretrained import llama2c, lora
from model.pretrained.chat_template import read_chat_template
from model.pretrained.hugging_face_loader import (
    COMPUTED,
    add_missing_model_type,
    eos_ids,
    find_family,
    is_hugging_face_folder,
    match_weights,
)
from model.pretrained.tokenizer import PretrainedTokenizer, read_tokenizer
from model.pretrained.weight_files import check_not_quantized_or_adapter, find_weight_files, list_weights
from model.tokenizer import Tokenizer

NOT_NAMED = "not named"
MAX_CARD_BYTES = 1 << 16  # of a model card, that are searched for its licence
LICENCE = re.compile(r"^license:[ \t]*(?:\n-[ \t]*)?([\w.+-]{1,60})", re.MULTILINE)
Row = tuple[str, str]  # label, text


@dataclass(frozen=True)
class Description:
    """Description of a model's files.

    Attributes:
        rows: labels and texts.
        notes: on what was assumed or not used.
        problem: why the model cannot be opened; None if nothing is known that prevents it.
    """

    rows: tuple[Row, ...]
    notes: tuple[LoadingNote, ...] = ()
    problem: ModelError | None = None

    def __str__(self) -> str:
        notes = [("note", str(note)) for note in self.notes]
        rows = [*self.rows, *notes, ("opens", f"no: {self.problem}" if self.problem else "yes")]
        width = max(len(label) for label, _text in rows) + 2
        return "\n".join(f"{label:{width}}{make_printable(text)}" for label, text in rows)


def describe_model(name_or_path: str | Path) -> Description:
    """Describe the files of a model from their headers, settings and tokenizer; no weight is read but tied tables.

    Raises:
        CheckpointError: nothing is there, or no model in a known format.
    """
    path = find_checkpoint(name_or_path)
    if lora.is_adapter(path):
        describe = _describe_adapter
    elif is_gguf(path):
        describe = _describe_gguf
    elif is_llama2c(path):
        describe = _describe_llama2c
    elif is_hugging_face_folder(path.parent if path.is_file() else path):
        describe = _describe_hugging_face
    else:
        describe = _describe_checkpoint
    rows: list[Row] = []
    notes: list[LoadingNote] = []
    try:
        for item in describe(path):
            rows.append(item) if isinstance(item, tuple) else notes.append(item)
        check_links(path)
    except ModelError as error:
        return Description(tuple(rows), tuple(notes), error)
    return Description(tuple(rows), tuple(notes))


def _describe_adapter(folder: Path) -> Iterator[Row | LoadingNote]:
    yield "folder", folder.name
    fields = read_json(folder / lora.CONFIG)
    yield "kind", f"adapter of peft, {fields.get('peft_type')}"
    yield "base model", str(fields.get("base_model_name_or_path"))
    yield "rank, alpha", f"{fields.get('r')}, {fields.get('lora_alpha')}"
    yield "licence", _read_licence(folder)
    lora.check_supported(fields)
    yield from _weight_rows([folder / lora.WEIGHTS])
    find_base_model(folder)


def _describe_gguf(path: Path) -> Iterator[Row | LoadingNote]:
    yield "file", f"{path.name}, {path.stat().st_size:,} bytes"
    header = read_header(path)
    yield "kind", f"GGUF {header.version}, of llama.cpp"
    yield from _general_rows(header)
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    kinds = Counter(tensor.kind.name for tensor in header.tensors)
    yield "parameters", f"{sum(map(math.prod, shapes.values())):,}"
    yield "types", _join_counts(kinds)
    architecture = gguf_loader.find_architecture(header)
    fields, unused = gguf_loader.parse_fields(header, architecture)
    if unused:
        yield gguf_loader.note_unused(unused)
    tokenizer = read_gguf_tokenizer(header.metadata, fields["vocab_size"])
    yield "tokenizer", describe_tokenizer(tokenizer)
    yield "chat template", describe_template(tokenizer.chat_template)
    yield from tokenizer.notes
    settings, config, _by_name, notes = match_weights(fields, architecture, gguf_loader.model_tensors(header))
    yield "model", describe_config(config)
    yield from (*settings.notes(), *notes)
    gguf_loader.check_types(header.tensors)


def _general_rows(header: GGUFHeader) -> Iterator[Row]:
    """Yield what the file says of itself."""
    for label, name in (("name", "name"), ("architecture", "architecture"), ("licence", "license")):
        value = header.metadata.get(f"general.{name}")
        yield label, value if isinstance(value, str) else NOT_NAMED


def _describe_hugging_face(path: Path) -> Iterator[Row | LoadingNote]:
    folder, files = (path.parent, [path]) if path.is_file() else (path, None)
    yield "folder", folder.name
    yield "kind", "safetensors with config.json, of Hugging Face’s transformers"
    fields = add_missing_model_type(read_json(folder / "config.json"))
    yield "architecture", str(fields.get("model_type"))
    yield "licence", _read_licence(folder)
    weights = list(list_weights(files or find_weight_files(folder)))
    yield from _weight_rows(files or find_weight_files(folder))
    tokenizer = None
    with suppress(ModelError):
        tokenizer = read_tokenizer(folder, int(fields.get("vocab_size") or 0) or 1 << 20, eos_ids(folder, fields))
    if tokenizer is not None:
        yield "tokenizer", describe_tokenizer(tokenizer)
    yield "chat template", describe_template(read_chat_template(folder))
    check_not_quantized_or_adapter(weights)
    settings, config, _by_name, notes = match_weights(fields, find_family(fields), weights)
    yield "model", describe_config(config)
    yield from (*settings.notes(), *notes)
    read_tokenizer(folder, config.vocab_size, eos_ids(folder, fields))


def _describe_checkpoint(path: Path) -> Iterator[Row | LoadingNote]:
    folder = path.parent if path.is_file() else path
    yield "folder", folder.name
    yield "kind", "safetensors with config.json, of this project"
    yield "licence", _read_licence(folder)
    yield from _weight_rows([path if path.is_file() else folder / "model.safetensors"])
    yield "model", describe_config(read_config(folder / "config.json"))
    files = [file for file in (folder / TOKENIZER, folder.parent / TOKENIZER) if not is_missing(file)]
    yield "tokenizer", describe_tokenizer(Tokenizer.load(files[0])) if files else "none beside it"


def _describe_llama2c(path: Path) -> Iterator[Row | LoadingNote]:
    yield "file", f"{path.name}, {path.stat().st_size:,} bytes"
    yield "kind", "llama2.c"
    with path.open("rb") as file:
        config = llama2c.parse_config(file.read(llama2c.HEADER.size), path.name)
    yield "parameters", f"{num_parameters(config):,}"
    yield "types", "F32"
    yield "model", describe_config(config)


def _weight_rows(files: Sequence[Path]) -> Iterator[Row]:
    """Yield number and types of the weights of safetensors files, from their headers."""
    shapes: dict[str, Sequence[int]] = {}
    kinds: Counter[str] = Counter()
    for path in files:
        with open_weights(path) as weights:
            for name in weights.keys():  # noqa: SIM118
                if not COMPUTED.search(name):
                    shapes[name] = weights.get_slice(name).get_shape()
                    kinds[weights.get_slice(name).get_dtype()] += 1
    yield "parameters", f"{sum(map(math.prod, shapes.values())):,}"
    yield "types", _join_counts(kinds)


def _join_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} in {count}" for name, count in counts.most_common()) + " tensors"


def describe_config(config: ModelConfig) -> str:
    """Return a model's sizes and its choices."""
    heads = f"{config.num_heads} heads of width {config.d_head}"
    if config.kv_heads != config.num_heads:
        heads += f", {config.kv_heads} of keys and values"
    sizes = f"{config.num_layers} layers, width {config.d_model}, {heads}, feed-forward {config.d_ff} ({config.ffn})"
    rest = f"{config.norm}, {config.position} positions, vocabulary {config.vocab_size:,}"
    embeddings = "tied" if config.tie_embeddings else "untied"
    return f"{sizes}, {rest}, context {config.context_length:,}, {embeddings} embeddings"


def describe_tokenizer(tokenizer: Tokenizer | PretrainedTokenizer) -> str:
    """Return a tokenizer's size, and the tokens that begin and end a text."""
    begin, end = (
        " ".join(map(tokenizer.token_text, ids)) or "nothing" for ids in (tokenizer.bos_ids, tokenizer.eos_ids)
    )
    return f"{tokenizer.vocab_size:,} ids, before a text {begin}, after it {end}"


def describe_template(template: str | None) -> str:
    """Return whether there is a chat template, and how long it is."""
    return "none" if template is None else f"{len(template):,} characters"


def _read_licence(folder: Path) -> str:
    """Return the licence that a folder's model card names."""
    with suppress(OSError), (folder / "README.md").open(encoding="utf-8", errors="replace") as card:
        if match := LICENCE.search(card.read(MAX_CARD_BYTES)):
            return match[1]
    return NOT_NAMED


def make_printable(text: Any) -> str:
    """Return a file's text without control characters and at most 300 characters long, for a terminal."""
    line = "".join(character if character.isprintable() else " " for character in str(text))
    return line if len(line) <= 300 else f"{line[:300]}…"


def main(arguments: list[str] | None = None):
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m model.describe", description="Describe a model's files without opening the model."
    )
    parser.add_argument("name", metavar="NAME_OR_PATH", help="checkpoint name or path, as for load_checkpoint")
    options = parser.parse_args(arguments)
    try:
        description = describe_model(options.name)
    except CheckpointError as error:
        sys.exit(f"error: {error}")
    print(description)
    if description.problem:
        sys.exit(1)


if __name__ == "__main__":
    main()
