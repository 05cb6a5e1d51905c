"""Gemma (Mesnard et al. 2024): Llama with GEGLU, scaled embeddings, and norms stored less 1, as in Gemma 2."""

from dataclasses import replace

from model.config import ModelConfig
from model.pretrained import gemma2, llama
from model.pretrained.config_reader import HFConfigFields

NAMES = llama.NAMES
convert_weight = gemma2.convert_weight


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    settings.get_supported("use_bidirectional_attention", False)
    return replace(llama.parse_config(settings), scale_embeddings=True)
