"""GGUF files of small transformers models, written with llama.cpp's own package as its converter does."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

PIECES_OF_SENTENCEPIECE = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
# Architecture -> module names in transformers, in addition to those of Llama.
LLAMA = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GEMMA2 = LLAMA | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GPT2 = {
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "lm_head": "output",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
MODULES = {"gemma2": GEMMA2, "gemma3": GEMMA2, "gpt2": GPT2}
PERMUTED = ("llama", "smollm3")  # their rotary layout is adjacent dimensions


def gguf_name(name: str, architecture: str) -> str:
    """Return a weight's name in a file by its name in transformers."""
    module, _dot, kind = name.rpartition(".")
    for stack in ("model.layers.", "transformer.h."):
        if module.startswith(stack):
            layer, _dot, module = module.removeprefix(stack).partition(".")
            return f"blk.{layer}.{MODULES.get(architecture, LLAMA)[module]}.{kind}"
    return f"{MODULES.get(architecture, LLAMA)[module]}.{kind}"


def convert_weights(model: torch.nn.Module, architecture: str) -> dict[str, np.ndarray]:
    """Return a model's weights as llama.cpp's converter writes them."""
    weights = {}
    config = model.config
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if architecture in PERMUTED and (".q_proj." in name or ".k_proj." in name):
            heads = config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads
            weight = weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)
        if architecture.startswith("gemma") and "norm" in name:
            weight = weight + 1
        if architecture == "gpt2" and weight.ndim == 2 and ".h." in name:
            weight = weight.T
        weights[gguf_name(name, architecture)] = weight.detach().contiguous().numpy()
    return weights


def add_config(writer: gguf.GGUFWriter, architecture: str, config: Any) -> None:
    """Write the values of a config under the names of an architecture."""
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gpt2":
        writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(width)
    writer.add_value_length(width)
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(width * rope.get("partial_rotary_factor", 1)))
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "longrope":
        ratio = config.max_position_embeddings / rope["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(
            math.sqrt(1 + math.log(ratio) / math.log(rope["original_max_position_embeddings"]))
        )
    if architecture in ("gemma2", "gemma3", "phi3") and config.sliding_window:
        writer.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def llama3_factors(rope: dict[str, float], width: int) -> np.ndarray:
    """Return the divisor of each pair's frequency under Llama 3.1's scaling, as llama.cpp's converter writes it."""
    frequencies = rope["rope_theta"] ** -(np.arange(0, width, 2) / width)
    wavelengths, length = 2 * np.pi / frequencies, rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    smooth = np.clip((length / wavelengths - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def write_gguf(
    path: Path,
    model: torch.nn.Module,
    architecture: str,
    add_tokenizer: Callable[[gguf.GGUFWriter, int], None] | None = None,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    weights: dict[str, np.ndarray] | None = None,
    **metadata: str | int,
) -> dict[str, np.ndarray]:
    """Write a file with matrices of type `kind`; return the dequantised weights as read from it.

    Args:
        weights: by their names in the file; None: the model's.
        metadata: other texts and counts, with _ for the dots of their names.
    """
    writer = gguf.GGUFWriter(path, architecture)
    add_config(writer, architecture, model.config)
    (add_tokenizer or add_byte_level)(writer, model.config.vocab_size)
    for name, value in metadata.items():
        name = name.replace("_", ".", 1)
        writer.kv_data[0].pop(name, None)
        (writer.add_string if isinstance(value, str) else writer.add_uint32)(name, value)
    stored = {}
    for name, weight in (weights or convert_weights(model, architecture)).items():
        quantized = weight.ndim == 2 and kind != gguf.GGMLQuantizationType.F32
        data = quantize(weight, kind) if quantized else weight
        writer.add_tensor(name, data, raw_dtype=kind if quantized else None)
        is_read = kind.name != "Q8_K"
        stored[name] = gguf.dequantize(data, kind) if quantized and is_read else weight
    rope = getattr(model.config, "rope_parameters", None) or {}
    rope = rope.get("full_attention", rope)
    width = getattr(model.config, "head_dim", None) or model.config.hidden_size // model.config.num_attention_heads
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, width))
    if rope.get("rope_type") == "longrope":
        for length in ("short", "long"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stored


# Types that the package does not write, and bytes of a block where a float16 begins.
SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q8_K": ()}
SCALES |= {"IQ2_XXS": (0,), "IQ4_XS": (0,)}


def quantize(weight: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """Return a matrix as blocks of a type; random blocks for types that the package can read but not write."""
    if kind.name not in SCALES:
        return gguf.quantize(weight, kind)
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(weight.shape[0])
    blocks = rng.integers(0, 256, (weight.shape[0], weight.shape[1] // block_size, block_bytes), dtype=np.uint8)
    for start in SCALES[kind.name]:
        scales = rng.uniform(1e-5, 1e-4, (*blocks.shape[:2], 1)).astype(np.float16)
        blocks[..., start : start + 2] = scales.view(np.uint8)
    return blocks.reshape(weight.shape[0], -1)


def add_byte_level(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """Write a tokenizer of single bytes and one merge, with a chat template."""
    from model.pretrained.tokenizer import encode_byte_level_piece

    pieces = [encode_byte_level_piece(bytes([byte])) for byte in range(256)]
    pieces += [encode_byte_level_piece(b"fo"), "<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    pieces += [f"[unused{i}]" for i in range(len(pieces), vocab_size)]
    kinds = [gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * 3
    kinds += [gguf.TokenType.UNUSED] * (vocab_size - len(kinds))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges(["f o"])
    writer.add_eos_token_id(259)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}")


def add_sentencepiece(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """Write a tokenizer of SentencePiece: bytes, letters, and pieces that are merged by their scores."""
    words = ["▁", "t", "h", "e", "f", "o", "x", "th", "▁the", "he", "fo", "fox", "▁fox", "▁t", "▁f"]
    scores = {"th": -1.0, "▁t": -2.0, "▁the": -3.0, "he": -4.0, "fo": -5.0, "fox": -6.0, "▁f": -7.0, "▁fox": -8.0}
    pieces = [*PIECES_OF_SENTENCEPIECE, *words]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * len(words)
    padding = vocab_size - len(pieces)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*pieces, *(f"[unused{i}]" for i in range(padding))])
    writer.add_token_scores([scores.get(piece, -100.0) for piece in pieces] + [-1000.0] * padding)
    writer.add_token_types([*kinds, *[gguf.TokenType.UNUSED] * padding])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
