"""OPT (Zhang et al. 2022), except its 350M model, whose embeddings are narrower than its stream."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.config_reader import ACTIVATIONS, HFConfigFields

NAMES = {
    "decoder.embed_tokens": "token_embedding",
    "decoder.embed_positions": "position_embedding",
    "decoder.layers.*.self_attn_layer_norm": "blocks.*.attn_norm",
    "decoder.layers.*.self_attn.q_proj": "blocks.*.attn.q_proj",
    "decoder.layers.*.self_attn.k_proj": "blocks.*.attn.k_proj",
    "decoder.layers.*.self_attn.v_proj": "blocks.*.attn.v_proj",
    "decoder.layers.*.self_attn.out_proj": "blocks.*.attn.o_proj",
    "decoder.layers.*.final_layer_norm": "blocks.*.ffn_norm",
    "decoder.layers.*.fc1": "blocks.*.ffn.up_proj",
    "decoder.layers.*.fc2": "blocks.*.ffn.down_proj",
    "decoder.final_layer_norm": "final_norm",
    "lm_head": "lm_head",
}
PREFIX = "model."  # before all names but lm_head, in some files
FIRST_POSITION = 2  # the table's row of the first token: those before it were for padding


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    d_model = settings.size("hidden_size")
    settings.get_supported("word_embed_proj_dim", d_model)
    settings.get_supported("layer_norm_elementwise_affine", True)
    is_pre_norm = settings.flag("do_layer_norm_before")
    if is_pre_norm:  # else there is no norm at the end anyway
        settings.get_supported("_remove_final_layer_norm", False)
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("max_position_embeddings"),
        d_model=d_model,
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings.size("num_attention_heads"),
        d_ff=settings.size("ffn_dim"),
        norm="layernorm",
        norm_placement="pre" if is_pre_norm else "post",
        position="learned",
        ffn=settings.activation("activation_function", ACTIVATIONS),
        bias=settings.flag("enable_bias"),
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: the first two rows of the position table (padding) are dropped."""
    return {name: weight[FIRST_POSITION:] if name.startswith("position_embedding.") else weight}
