"""Export of models as GGUF files, which llama.cpp opens, and programs built on it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch
from gguf import GGUFValueType, GGUFWriter
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.gguf.gguf_file import DTYPES, read_header
from model.gguf.gguf_loader import ARCHITECTURES, FIELDS, GPT2_FIELDS, NAMES, parse_fields
from model.gguf.gguf_tokenizer import CONTROL, NORMAL, UNUSED, find_word_split
from model.layers.positions import convert_to_adjacent
from model.pretrained.config_reader import HFConfigFields
from model.pretrained.export_hugging_face import choose_format
from model.pretrained.tokenizer import PretrainedTokenizer, encode_byte_level_piece
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

Value = str | bool | int | float | Sequence[str] | Sequence[int]


def save_gguf(
    lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer, path: Path, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a file that llama.cpp, and `load_checkpoint`, open as a model with equal logits; return its path.

    Args:
        dtype: of the matrices; gains and biases are float32, as llama.cpp needs them.

    Raises:
        ModelError: no architecture of llama.cpp that is known here computes the same, or the tokenizer is of a kind
            that is not written.
        ValueError: a weight is too large for `dtype`.
    """
    export_format = choose_format(lm.config)
    config_fields = export_format.fields(lm.config)
    architecture = config_fields["model_type"]
    metadata = {"general.architecture": architecture, "general.name": path.stem}
    metadata |= config_metadata(architecture, config_fields)
    metadata |= tokenizer_metadata(tokenizer, lm.config.vocab_size)
    tensors = {}
    for name, weight in export_format.weights(lm).items():
        converted = convert_to_gguf_layout(name, weight.detach().cpu(), architecture, lm.config)
        converted = converted.to(dtype if converted.ndim > 1 else torch.float32).contiguous()
        if not converted.isfinite().all():
            raise ValueError(f"{name} holds values that are not finite as {dtype}; save with another dtype")
        tensors[to_gguf_name(name)] = converted
    part = path.with_name(f"{path.name}.part")
    try:
        write_file(part, metadata, tensors)
        check_round_trip(
            part, replace(lm.config, dropout=0.0, attention_dropout=0.0, **export_format.equivalent(lm.config))
        )
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def config_metadata(architecture: str, config_fields: Mapping[str, Any]) -> dict[str, Value]:
    """Return the metadata of a config of transformers; ModelError for a scaling of rotations that is not written."""
    names = GPT2_FIELDS if architecture == "gpt2" else FIELDS
    metadata = {
        f"{architecture}.{name}": config_fields[field] for name, field in names.items() if field in config_fields
    }
    if architecture == "gpt2":
        return metadata
    metadata[f"{architecture}.attention.value_length"] = config_fields["head_dim"]
    metadata[f"{architecture}.rope.dimension_count"] = config_fields["head_dim"]
    if scaling := config_fields["rope_scaling"]:
        if scaling["rope_type"] != "linear":
            raise ModelError("rotations that are scaled as {kind} are not written as GGUF", kind=scaling["rope_type"])
        metadata[f"{architecture}.rope.scaling.type"] = "linear"
        metadata[f"{architecture}.rope.scaling.factor"] = float(scaling["factor"])
    return metadata


def convert_to_gguf_layout(name: str, weight: Tensor, architecture: str, config: ModelConfig) -> Tensor:
    """Return a weight, as transformers stores it, in llama.cpp's layout (see `gguf_loader`)."""
    if architecture == "gpt2" and name.startswith("blocks.") and weight.ndim == 2:
        return weight.T
    if architecture == "llama" and name.split(".")[-2] in ("q_proj", "k_proj"):
        return convert_to_adjacent(weight, config.d_head)
    return weight


def to_gguf_name(name: str) -> str:
    """Return llama.cpp's name of one of our weights."""
    module, _dot, kind = name.rpartition(".")
    parts = module.split(".")
    layer = parts[1] if parts[0] == "blocks" else ""
    theirs = {ours: gguf_name for gguf_name, ours in NAMES.items()}
    return f"{theirs['.'.join(['blocks', '*', *parts[2:]] if layer else parts)].replace('*', layer)}.{kind}"


def tokenizer_metadata(tokenizer: Tokenizer | PretrainedTokenizer, vocab_size: int) -> dict[str, Value]:
    """Return the metadata of a byte-level tokenizer; ModelError for another kind."""
    if isinstance(tokenizer, PretrainedTokenizer):
        pieces, merges, word_split = pretrained_pieces(tokenizer)
    else:
        tokens = [encode_byte_level_piece(token) for token in tokenizer.bytes_of_ids if token is not None]
        pieces, word_split = {piece: id_ for id_, piece in enumerate(tokens)}, "gpt-2"
        merges = [" ".join(map(encode_byte_level_piece, pair)) for pair in tokenizer.merges]
    specials = {id_: text for text, id_ in tokenizer.special_tokens.items()}
    texts = {id_: piece for piece, id_ in pieces.items()} | specials
    kinds = [CONTROL if id_ in specials else NORMAL if id_ in texts else UNUSED for id_ in range(vocab_size)]
    metadata: dict[str, Value] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": word_split,
        "tokenizer.ggml.tokens": [texts.get(id_, f"[unused{id_}]") for id_ in range(vocab_size)],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.add_bos_token": bool(tokenizer.bos_ids),
    }
    if begins := tokenizer.bos_ids or tokenizer.eos_ids:
        metadata["tokenizer.ggml.bos_token_id"] = begins[0]
    if tokenizer.eos_ids:
        metadata["tokenizer.ggml.eos_token_id"] = tokenizer.eos_ids[0]
    if template := getattr(tokenizer, "chat_template", None):
        metadata["tokenizer.chat_template"] = template
    return metadata


def pretrained_pieces(tokenizer: PretrainedTokenizer) -> tuple[dict[str, int], list[str], str]:
    """Return pieces with their ids, merges, and how words are split; ModelError unless GGUF has that kind."""
    description = json.loads(tokenizer.to_json())
    word_split = find_word_split(tokenizers.Tokenizer.from_str(tokenizer.to_json()))
    if description["model"]["type"] != "BPE" or word_split is None:
        raise ModelError("a tokenizer of this kind is not written as GGUF: only byte-level BPE of some families is")
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in description["model"]["merges"]]
    added = {token["content"]: token["id"] for token in description["added_tokens"]}
    return description["model"]["vocab"] | added, [" ".join(pair) for pair in pairs], word_split


def check_round_trip(path: Path, expected: ModelConfig) -> None:
    """Raise ModelError unless a file is read as the expected config."""
    header = read_header(path)
    architecture = ARCHITECTURES[header.metadata["general.architecture"]]
    parsed = architecture.parse_config(HFConfigFields(parse_fields(header, architecture)[0]))
    for field in fields(ModelConfig):
        if getattr(parsed, field.name) != getattr(expected, field.name):
            raise ModelError(
                "no model of llama.cpp that is known here has {name} {got!r} with the rest of this config",
                name=field.name,
                got=getattr(expected, field.name),
            )


def write_file(path: Path, metadata: Mapping[str, Value], tensors: Mapping[str, Tensor]) -> None:
    """Write a GGUF file of values, and tensors of float32, float16 or bfloat16."""
    writer = GGUFWriter(path, metadata["general.architecture"])
    for name, value in metadata.items():
        kind = GGUFValueType.UINT32 if type(value) is int else GGUFValueType.get_type(value)
        if value != [] and name != "general.architecture":  # which the writer has
            writer.add_key_value(name, value, kind)
    numbers = {dtype: number for number, dtype in DTYPES.items()}
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor.view(torch.uint8).numpy(), raw_dtype=numbers[tensor.dtype])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
