"""nanochat (Karpathy 2025)."""

import torch
from torch import Tensor

from model.config import ModelConfig
from model.pretrained.config_reader import ACTIVATIONS, Family, HFConfigFields, parse_rope, parse_sizes


class Nanochat(Family):
    """nanochat, some of whose architecture is expressed in our weights.

    Its norms have no gains: ours are 1. It normalises embeddings: the rows of our table are normalised. It rotates
    queries and keys backwards: the two halves of each head's dimensions are swapped. It normalises queries and keys
    after the rotation instead of before, which is equivalent, since rotations preserve norms.
    """

    NAMES = {
        "model.embed_tokens": "token_embedding",
        "model.layers.*.self_attn.q_proj": "blocks.*.attn.q_proj",
        "model.layers.*.self_attn.k_proj": "blocks.*.attn.k_proj",
        "model.layers.*.self_attn.v_proj": "blocks.*.attn.v_proj",
        "model.layers.*.self_attn.o_proj": "blocks.*.attn.o_proj",
        "model.layers.*.mlp.fc1": "blocks.*.ffn.up_proj",
        "model.layers.*.mlp.fc2": "blocks.*.ffn.down_proj",
        "lm_head": "lm_head",
    }

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        settings.get_supported("attention_bias", False)
        settings.get_supported("tie_word_embeddings", False)  # the unembedding's rows are not normalised
        return ModelConfig(
            **parse_sizes(settings),
            **parse_rope(settings),
            norm_eps=settings.number("rms_norm_eps"),
            qk_norm=True,
            logit_cap=settings.number("final_logit_softcapping"),
            ffn=settings.activation("hidden_act", ACTIVATIONS),
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: embeddings are normalised, halves of query and key heads swapped."""
        if name.startswith("token_embedding."):
            rows = weight.float()
            return {name: rows / (rows.square().mean(-1, keepdim=True) + config.norm_eps).sqrt()}
        if name.split(".")[-2] in ("q_proj", "k_proj"):
            return {name: weight.unflatten(0, (-1, 2, config.d_head // 2)).flip(1).flatten(0, 2)}
        return {name: weight}

    @staticmethod
    def default_weights(config: ModelConfig) -> dict[str, Tensor]:
        """Return the weights that the files lack: gains of 1."""
        block_gains = {"attn_norm": config.d_model, "ffn_norm": config.d_model}
        block_gains |= {"attn.q_norm": config.d_head, "attn.k_norm": config.d_head}
        gains = {"final_norm.weight": torch.ones(config.d_model)}
        for layer in range(config.num_layers):
            gains |= {f"blocks.{layer}.{norm}.weight": torch.ones(width) for norm, width in block_gains.items()}
        return gains
