"""GPT-2 (Radford et al. 2019) and DistilGPT-2."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.config_reader import ACTIVATIONS, HFConfigFields

NAMES = {
    "wte": "token_embedding",
    "wpe": "position_embedding",
    "h.*.ln_1": "blocks.*.attn_norm",
    "h.*.attn.c_attn": "blocks.*.attn.qkv",
    "h.*.attn.c_proj": "blocks.*.attn.o_proj",
    "h.*.ln_2": "blocks.*.ffn_norm",
    "h.*.mlp.c_fc": "blocks.*.ffn.up_proj",
    "h.*.mlp.c_proj": "blocks.*.ffn.down_proj",
    "ln_f": "final_norm",
    "lm_head": "lm_head",
}
PREFIX = "transformer."  # before all names but lm_head, in some files


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    d_model = settings.size("n_embd")
    settings.get_supported("scale_attn_by_inverse_layer_idx", False)
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("n_positions"),
        d_model=d_model,
        num_layers=settings.num_layers("n_layer"),
        num_heads=settings.size("n_head"),
        d_ff=settings.size("n_inner") or 4 * d_model,
        norm="layernorm",
        norm_eps=settings.number("layer_norm_epsilon"),
        score_divisor=None if settings.flag("scale_attn_weights") else 1.0,
        position="learned",
        ffn=settings.activation("activation_function", ACTIVATIONS),
        bias=True,
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: matrices are transposed, and queries, keys and values are split."""
    if name.startswith("blocks.") and weight.ndim == 2:
        weight = weight.T.contiguous()
    return split_qkv(name, weight)


def split_qkv(name: str, weight: Tensor) -> dict[str, Tensor]:
    """Split a weight of queries, keys and values (3D, …) into three; any other is returned alone."""
    if ".attn.qkv." not in name:
        return {name: weight}
    return {
        name.replace("qkv", f"{kind}_proj"): projection for kind, projection in zip("qkv", weight.chunk(3), strict=True)
    }
