"""Models of the browser tests."""

import json
import shutil
from pathlib import Path

import torch

from model.checkpoint import save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

CONTEXT_LENGTH = 64
STEPS = (0, 1, 2, 4, 8, 16, 32)  # checkpoints of "fables"
SHAPES = {
    "tiny": {"num_layers": 2, "num_heads": 2},
    "one-head": {"num_layers": 1, "num_heads": 1},
    "no-positions": {"num_layers": 2, "num_heads": 2, "position": "none"},
    "gpt-twin": {"num_layers": 3, "num_heads": 4, "norm": "layernorm", "position": "sinusoidal", "ffn": "relu"},
    "long-context": {"num_layers": 1, "num_heads": 2, "context_length": 128},
}

# URL for which every tab has content: a training step with an intervention, and a second prompt for comparison.
FIELDS_FOR_ALL_TABS = {
    "checkpoint": "fables/step-000004",
    "prompt": "66.67.68.69",
    "edits": "blocks.0.attn.z.1*zero",
    "b.checkpoint": "fables/step-000004",
    "b.prompt": "70.67.68.69",
}


def write_checkpoints(folder: Path, tokenizer: Tokenizer):
    """Write small random models, and two that cannot be loaded."""
    for seed, (name, shape) in enumerate(SHAPES.items()):
        torch.manual_seed(seed)
        sizes = {"vocab_size": tokenizer.vocab_size, "context_length": CONTEXT_LENGTH, "d_model": 32, "d_ff": 64}
        lm = TransformerLM(ModelConfig.llama_style(**sizes | shape))
        save_checkpoint(lm, tokenizer, folder / name, dtype=torch.float32)
    write_training_checkpoints(folder / "fables", tokenizer)
    shutil.copytree(folder / "tiny", folder / "truncated-weights")
    weights = folder / "truncated-weights" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    shutil.copytree(folder / "tiny", folder / "wrong-config")
    config = folder / "wrong-config" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"d_model": 48}))


def write_training_checkpoints(folder: Path, tokenizer: Tokenizer):
    """Write a different random model for each training step, and a record of the training."""
    for step in STEPS:
        torch.manual_seed(100 + step)
        sizes = {"vocab_size": tokenizer.vocab_size, "context_length": CONTEXT_LENGTH, "d_model": 32, "d_ff": 64}
        lm = TransformerLM(ModelConfig.llama_style(**sizes | SHAPES["tiny"]))
        save_checkpoint(lm, None, folder / f"step-{step:06d}", dtype=torch.float32)
    tokenizer.save(folder / "tokenizer.tiktoken")
    rows = ({"step": step, "train_loss": 6 - step / 16, "validation_loss": 6 - step / 20} for step in (4, 8, 16, 32))
    (folder / "training.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
