"""Models of llama.cpp's GGUF files: their metadata as the fields of a config, and their weights by our names.

The families are those of Hugging Face's transformers, whose files llama.cpp converts. It changes three things: rows of
queries and keys are reordered where it rotates neighbouring dimensions (Llama), gains of Gemma's norms are stored
whole, and matrices of GPT-2 are transposed. Matrices may stay in the file, as stored, and are dequantised each time
that they are used.
"""

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from torch import Tensor, nn

from model.checkpoint_reader import check_weight_stream, convert_tensor
from model.config import ModelConfig
from model.errors import LoadingNote, ModelError
from model.file_formats import split_file_error
from model.gguf.gguf_file import DTYPES, GGUFHeader, GGUFTensor, check_types, read_header
from model.gguf.gguf_tokenizer import read_gguf_tokenizer
from model.layers.basic_layers import Embedding
from model.layers.positions import convert_to_half_split
from model.pretrained import phi
from model.pretrained.config_reader import DEFAULTS, MAX_NAMES, Family
from model.pretrained.gpt import split_qkv
from model.pretrained.hugging_face_loader import FAMILIES, assemble_model, match_weights
from model.pretrained.llama import Llama
from model.pretrained.tokenizer import PretrainedTokenizer
from model.transformer_lm import TransformerLM
from model.weight_placement import OffloadedWeights, WeightPlacement, build_without_weights, set_weights

NAMES = {
    "token_embd": "token_embedding",
    "position_embd": "position_embedding",
    "blk.*.attn_norm": "blocks.*.attn_norm",
    "blk.*.attn_q": "blocks.*.attn.q_proj",
    "blk.*.attn_k": "blocks.*.attn.k_proj",
    "blk.*.attn_v": "blocks.*.attn.v_proj",
    "blk.*.attn_qkv": "blocks.*.attn.qkv",
    "blk.*.attn_output": "blocks.*.attn.o_proj",
    "blk.*.attn_q_norm": "blocks.*.attn.q_norm",
    "blk.*.attn_k_norm": "blocks.*.attn.k_norm",
    "blk.*.ffn_norm": "blocks.*.ffn_norm",
    "blk.*.ffn_gate": "blocks.*.ffn.gate_proj",
    "blk.*.ffn_up": "blocks.*.ffn.up_proj",
    "blk.*.ffn_down": "blocks.*.ffn.down_proj",
    "output_norm": "final_norm",
    "output": "lm_head",
}
SANDWICH = {
    "blk.*.post_attention_norm": "blocks.*.attn_out_norm",
    "blk.*.post_ffw_norm": "blocks.*.ffn_out_norm",
}
ROPE_FACTORS = ROPE_FREQS, ROPE_SHORT, ROPE_LONG = (
    "rope_freqs.weight",
    "rope_factors_short.weight",
    "rope_factors_long.weight",
)
# Metadata of an architecture, without its name -> field of the config.
FIELDS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base": "rope_theta",
    "rope.freq_base_swa": "rope_local_base_freq",
}
GPT2_FIELDS = {
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "context_length": "n_positions",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
REQUIRED = ("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head")
REQUIRED += ("max_position_embeddings", "n_positions", "intermediate_size")
ROPE_VALUES = {"attention.scale"} | {
    f"rope.scaling.{name}"
    for name in (
        "type",
        "factor",
        "original_context_length",
        "attn_factor",
        "yarn_beta_fast",
        "yarn_beta_slow",
        "finetuned",
    )
}
NO_EFFECT = {"vocab_size", "attention.value_length", "attention.causal", "rope.dimension_count", "tensor_data_layout"}
# Of Gemma's largest models, whose queries are not divided by the root of the head's width (llama.cpp, `gemma2.cpp`).
WIDE_QUERIES = {("gemma2", 46), ("gemma3", 62)}


def convert_llama(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: pairs of rows that rotate together are neighbours."""
    is_rotary = name.split(".")[-2] in ("q_proj", "k_proj")
    return {name: convert_to_half_split(weight, config.d_head) if is_rotary else weight}


def convert_gemma(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: the gains of norms are whole, all else is as in transformers."""
    return {name: weight} if name.split(".")[-2].endswith("norm") else Llama.convert_weight(name, weight, config)


def convert_gpt2(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: queries, keys and values are one matrix."""
    return split_qkv(name, weight)


class Architecture(Family):
    """Reading of the files of an architecture of llama.cpp.

    Args:
        model_type: of the family in transformers.
        convert_weight: see `Family`.
        names: name of a module in the file -> ours.
        fields: metadata -> field of the config.
    """

    PREFIX = ""

    def __init__(
        self,
        model_type: str,
        convert_weight: Callable[[str, Tensor, ModelConfig], dict[str, Tensor]] = Llama.convert_weight,
        names: Mapping[str, str] = NAMES,
        fields: Mapping[str, str] = FIELDS,
    ):
        self.model_type, self.NAMES, self.fields = model_type, names, fields
        self.parse_config, self.convert_weight = FAMILIES[model_type].parse_config, convert_weight


ARCHITECTURES = {  # `general.architecture`
    "llama": Architecture("llama", convert_llama),
    "smollm3": Architecture("smollm3", convert_llama),
    "qwen2": Architecture("qwen2"),
    "qwen3": Architecture("qwen3"),
    "phi3": Architecture("phi3", phi.Phi3.convert_weight, NAMES | {"blk.*.ffn_up": "blocks.*.ffn.gate_up"}),
    "gemma": Architecture("gemma", convert_gemma),
    "gemma2": Architecture("gemma2", convert_gemma, NAMES | SANDWICH),
    "gemma3": Architecture("gemma3_text", convert_gemma, NAMES | SANDWICH),
    "gpt2": Architecture("gpt2", convert_gpt2, fields=GPT2_FIELDS),
}


def load_gguf(
    path: Path,
    dtype: torch.dtype | None = None,
    placement: WeightPlacement | None = None,
    max_bytes: float = math.inf,
) -> tuple[TransformerLM, PretrainedTokenizer]:
    """Load the model and tokenizer of a GGUF file.

    Args:
        dtype: of the weights; None: as they are stored, or float32 if they are quantised or of several types.
        placement: of the weights; None: in the memory of the CPU.
        max_bytes: of weights in memory: with more, matrices stay in the file and are dequantised when they are used.

    Raises:
        ModelError: the file is damaged, or has an architecture, type or value that is not supported.
    """
    header = read_header(path)
    check_types(header.tensors)
    architecture = find_architecture(header)
    fields, unused = parse_fields(header, architecture)
    tokenizer = read_gguf_tokenizer(header.metadata, fields["vocab_size"])
    weights = model_tensors(header)
    if weight_num_bytes(header.tensors, dtype) > max_bytes:
        lm = map_model(fields, architecture, weights)
    else:
        lm = assemble_model(fields, architecture, weights, dtype, placement)
    notes = [describe_quantization(header.tensors)] if any(map(is_quantized, header.tensors)) else []
    if unused:
        notes.append(note_unused(unused))
    lm.notes = (*notes, *lm.notes, *tokenizer.notes)
    return lm, tokenizer


def model_tensors(header: GGUFHeader) -> list[GGUFTensor]:
    """Return a file's weights, without factors of rotations."""
    return [tensor for tensor in header.tensors if tensor.name not in ROPE_FACTORS]


def note_unused(names: Sequence[str]) -> LoadingNote:
    """Return a note on values of the metadata that were not used."""
    examples = ", ".join(names[:MAX_NAMES]) + ", …" * (len(names) > MAX_NAMES)
    return LoadingNote("values of its metadata that were not used: {names}", names=examples)


def map_model(fields: dict[str, Any], family: Family, tensors: Sequence[GGUFTensor]) -> TransformerLM:
    """Return a model that computes in float32, with matrices that stay in the file (see `use_mapped_weights`)."""
    settings, config, by_name, notes = match_weights(fields, family, tensors)
    shapes: dict[str, Tensor] = {}
    readers: dict[str, Callable[[], Tensor]] = {}

    def read(source: str, name: str) -> Tensor:
        return family.convert_weight(source, by_name[source].read(), config)[name].float()

    for source, tensor in by_name.items():
        for name, weight in family.convert_weight(source, torch.empty(tensor.shape, device="meta"), config).items():
            shapes[name], readers[name] = weight, partial(read, source, name)
    for name, _weight in check_weight_stream(config, shapes.items()):
        if shapes[name].ndim == 1:
            shapes[name] = convert_tensor(name, readers.pop(name)(), torch.float32)
    lm = build_without_weights(config)
    set_weights(lm, shapes)
    if config.tie_embeddings:
        readers["lm_head.weight"] = readers["token_embedding.weight"]
    use_mapped_weights(lm, readers, lambda ids: by_name["token_embedding.weight"].read_rows(ids).float())
    slow = LoadingNote(
        "the weights are too large for the memory: each is read from the file whenever it is used, which is slow"
    )
    lm.notes += (*settings.notes(), *notes, slow)
    return lm


def gguf_num_bytes(path: Path, dtype: torch.dtype | None = None) -> int:
    """Return `weight_num_bytes` of a file; errors as of `read_header`."""
    return weight_num_bytes(read_header(path).tensors, dtype)


def weight_num_bytes(tensors: Sequence[GGUFTensor], dtype: torch.dtype | None = None) -> int:
    """Return the memory of weights in bytes.

    Args:
        dtype: of the weights in memory; None: as `load_gguf` chooses it.
    """
    kinds = {DTYPES.get(tensor.kind) for tensor in tensors if len(tensor.shape) > 1}
    dtype = dtype or (kinds.pop() if len(kinds) == 1 else None) or torch.float32
    return sum(dtype.itemsize * math.prod(tensor.shape) for tensor in tensors)


def is_quantized(tensor: GGUFTensor) -> bool:
    """Return True if a tensor's type has no equal in PyTorch."""
    return tensor.kind not in DTYPES


def describe_quantization(tensors: Iterable[GGUFTensor]) -> LoadingNote:
    """Return a note on the types of quantised weights, that of most numbers first."""
    sizes: Counter[GGMLQuantizationType] = Counter()
    for tensor in filter(is_quantized, tensors):
        sizes[tensor.kind] += tensor.num_bytes
    kinds = [kind for kind, _size in sizes.most_common()]
    return LoadingNote(
        "{bits}-bit weights, as stored ({types}): all numbers here are of the dequantised weights",
        bits=re.search(r"\d+", kinds[0].name)[0],  # of an integer in a block
        types=", ".join(kind.name for kind in kinds),
    )


def find_architecture(header: GGUFHeader) -> Architecture:
    """Return how the file's architecture is read; ModelError if it is not supported, or not in one file."""
    name = header.metadata.get("general.architecture")
    if name not in ARCHITECTURES:
        raise ModelError(
            "models of the architecture {kind!r} are not understood, only {known}",
            kind=name,
            known=", ".join(sorted(ARCHITECTURES)),
        )
    if (count := header.metadata.get("split.count", 1)) not in (0, 1):
        raise split_file_error(count)
    if header.metadata.get(f"{name}.expert_count", 0):
        raise ModelError("it is a mixture of experts, which is not supported")
    return ARCHITECTURES[name]


def parse_fields(header: GGUFHeader, architecture: Architecture) -> tuple[dict[str, Any], list[str]]:
    """Return the file's metadata as fields of a config of transformers, and the names of values that are not used.

    Raises:
        ModelError: a value that is needed is missing, or not supported.
    """
    prefix = f"{header.metadata['general.architecture']}."
    values = {
        name.removeprefix(prefix): _merge_layers(value)
        for name, value in header.metadata.items()
        if name.startswith(prefix)
    }
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    if "token_embd.weight" not in shapes:
        raise ModelError("its weights lack {name}", name="token_embd.weight")
    supported = DEFAULTS[architecture.model_type]
    fields = {
        field: values[name] for name, field in architecture.fields.items() if name in values and field in supported
    }
    for name, field in architecture.fields.items():
        if field in REQUIRED and field not in fields:
            raise ModelError("its metadata lack {name}", name=prefix + name)
    fields |= {"vocab_size": shapes["token_embd.weight"][0], "tie_word_embeddings": "output.weight" not in shapes}
    if "attention_bias" in supported:
        fields["attention_bias"] = "blk.0.attn_q.bias" in shapes
    if "mlp_bias" in supported:
        fields["mlp_bias"] = "blk.0.ffn_up.bias" in shapes
    read = NO_EFFECT | {name for name, field in architecture.fields.items() if field in supported}
    if architecture.model_type != "gpt2":
        fields |= {name: value for name, value in _parse_heads(values, fields, prefix).items() if name in supported}
        fields |= _parse_scaling(header, values, fields)
        read |= ROPE_VALUES
    if not fields.get("sliding_window", True):
        fields["sliding_window"] = None  # as 0 tokens mean no window
    fields["model_type"] = architecture.model_type
    unused = sorted(values.keys() - read)
    return fields, [prefix + name for name in unused]


def _merge_layers(value: Any) -> Any:
    """Return a list of numbers as one if all are equal: a value of each layer."""
    if not isinstance(value, np.ndarray):
        return value
    numbers = value.tolist()
    return numbers[0] if len(set(numbers)) == 1 else numbers


def _parse_heads(values: Mapping[str, Any], fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the fields of the heads' width, of its rotated part, and of the divisor of scores."""
    kind, heads = prefix.removesuffix("."), fields["num_attention_heads"]
    heads_width = fields["hidden_size"] // max(1, heads) if isinstance(heads, int) else 0
    width = values.get("attention.key_length", heads_width)
    if values.get("attention.value_length", width) != width:
        raise ModelError(
            "its keys are {keys} numbers wide and its values {values}: only equal widths are supported",
            keys=width,
            values=values["attention.value_length"],
        )
    result: dict[str, Any] = {"head_dim": width}
    rotated = values.get("rope.dimension_count", width)
    if kind == "phi3":
        result["partial_rotary_factor"] = (rotated + 0.5) / width if rotated < width else 1.0  # is rounded down
    elif rotated != width:
        raise ModelError(
            "{name} {got!r} is not understood, only {known}",
            name=f"{prefix}rope.dimension_count",
            got=rotated,
            known=width,
        )
    scale = values.get("attention.scale")
    wide = (kind, fields["num_hidden_layers"]) in WIDE_QUERIES
    result["query_pre_attn_scalar"] = scale**-2 if scale else heads_width if wide else width
    return result


def _parse_scaling(header: GGUFHeader, values: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the scaling of rotations, which some files have as tensors of factors."""
    kind = values.get("rope.scaling.type", "none")
    factors = {tensor.name: tensor.read().tolist() for tensor in header.tensors if tensor.name in ROPE_FACTORS}
    length = values.get("rope.scaling.original_context_length", fields["max_position_embeddings"])
    if kind == "linear":
        scaling = {"rope_type": "linear", "factor": values.get("rope.scaling.factor")}
    elif kind == "yarn":
        scaling = {"rope_type": "yarn", "factor": values.get("rope.scaling.factor")}
        scaling |= {
            name: values[f"rope.scaling.yarn_{name}"]
            for name in ("beta_fast", "beta_slow")
            if f"rope.scaling.yarn_{name}" in values
        }
    elif kind not in ("none", "longrope"):
        raise ModelError(
            "rope_type {got!r} is not understood, only {known}", got=kind, known="none, linear, yarn, longrope"
        )
    elif ROPE_SHORT in factors:
        scaling = {"rope_type": "longrope", "short_factor": factors[ROPE_SHORT]}
        scaling |= {"long_factor": factors.get(ROPE_LONG)}
        if "rope.scaling.attn_factor" in values:
            scaling |= {"attention_factor": values["rope.scaling.attn_factor"]}
    elif ROPE_FREQS in factors:  # as for Llama 3.1: one factor a pair, at any length
        scaling = {"rope_type": "longrope", "short_factor": factors[ROPE_FREQS], "attention_factor": 1.0}
        length = fields["max_position_embeddings"]
    else:
        return {}
    if factors and scaling["rope_type"] != "longrope":
        raise ModelError("its rotations are scaled twice, by {kind} and by factors of the pairs", kind=kind)
    return {"rope_scaling": scaling, "original_max_position_embeddings": length}


Reader = Callable[[], Tensor]
RowReader = Callable[[Sequence[int]], Tensor]


def use_mapped_weights(lm: TransformerLM, readers: Mapping[str, Reader], embedding_rows: RowReader) -> None:
    """Let a model, whose matrices are on the meta device, read each from its file whenever a module runs.

    Args:
        readers: name of each matrix -> function that returns it.
        embedding_rows: ids -> rows of the embedding table, which is not read as a whole for a few tokens.
    """
    for name, module in lm.named_modules():
        weights = {kind: readers[f"{name}.{kind}"] for kind in ("weight",) if f"{name}.{kind}" in readers}
        if isinstance(module, Embedding) and name == "token_embedding":
            module.forward = partial(_embed, embedding_rows)
        elif weights:
            _read_when_called(module, weights)
    lm.offloaded = OffloadedWeights(torch.device("cpu"), readers, {}, None)


def _embed(read_rows: RowReader, token_ids: Tensor) -> Tensor:
    """Return the rows of token ids (B, T) as (B, T, D)."""
    return read_rows(token_ids.flatten().tolist()).unflatten(0, token_ids.shape)


def _read_when_called(module: nn.Module, readers: Mapping[str, Reader]) -> None:
    """Make a module read weights before its `forward`, and drop them after; concurrent calls wait for each other."""
    forward, lock = module.forward, threading.Lock()
    placeholders = {name: getattr(module, name) for name in readers}

    @wraps(forward)
    def forward_with_weights(*args: Tensor) -> Tensor:
        with lock:
            try:
                for name, read in readers.items():
                    module._parameters[name] = nn.Parameter(read(), requires_grad=False)
                return forward(*args)
            finally:
                module._parameters.update(placeholders)

    module.forward = forward_with_weights
