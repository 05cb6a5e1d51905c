"""The models that the browser tests choose among."""

import json
import shutil
from pathlib import Path

import torch

from model.checkpoint import save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

CONTEXT = 64
SHAPES = {
    "tiny": {"num_layers": 2, "num_heads": 2},
    "one-head": {"num_layers": 1, "num_heads": 1},
    "no-positions": {"num_layers": 2, "num_heads": 2, "position": "none"},
    "gpt-twin": {"num_layers": 3, "num_heads": 4, "norm": "layernorm", "position": "sinusoidal", "ffn": "relu"},
    "long-context": {"num_layers": 1, "num_heads": 2, "context_length": 128},
}


def write_checkpoints(folder: Path, tokenizer: Tokenizer):
    """Small random models and two that cannot be loaded."""
    for seed, (name, shape) in enumerate(SHAPES.items()):
        torch.manual_seed(seed)
        sizes = {"vocab_size": tokenizer.vocab_size, "context_length": CONTEXT, "d_model": 32, "d_ff": 64}
        lm = TransformerLM(ModelConfig.llama_style(**sizes | shape))
        save_checkpoint(lm, tokenizer, folder / name, dtype=torch.float32)
    shutil.copytree(folder / "tiny", folder / "truncated-weights")
    weights = folder / "truncated-weights" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    shutil.copytree(folder / "tiny", folder / "wrong-config")
    config = folder / "wrong-config" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"d_model": 48}))
