"""Differences between transformers and our model on a `config.json`, with the same random weights."""

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file

from model.checkpoint import CheckpointError, load_checkpoint
from tests.hugging_face import transformers

IDS = torch.arange(3, 22)[None]  # longer than the attention windows


class NoReferenceError(Exception):
    """Error for a config that transformers cannot build or run."""


def build_hf_model(fields: dict[str, Any]) -> torch.nn.Module:
    """Return a transformers model with random weights; NoReferenceError if there is none."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            kind = fields.get("model_type", "gpt2")
            config = transformers.AutoConfig.for_model(kind, **json.loads(json.dumps(drop_model_type(fields))))
            torch.manual_seed(0)
            options = {"attn_implementation": "eager", "dtype": torch.float32}
            model = transformers.AutoModelForCausalLM.from_config(config, **options).eval()
    except Exception as error:
        raise NoReferenceError(str(error)) from error
    with torch.no_grad():
        for parameter in model.parameters():  # changes initial gains and biases, too
            if parameter.ndim > 1:
                parameter.normal_(0, 1.5 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) / 10)
    return model


def drop_model_type(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "model_type"}


@torch.no_grad()
def max_logit_difference(fields: dict[str, Any], folder: Path) -> float | str:
    """Return the largest difference of logits, or our error message; NoReferenceError if transformers fails."""
    model = build_hf_model(fields)
    try:
        expected = model(IDS, use_cache=False).logits[0]
    except Exception as error:
        raise NoReferenceError(str(error)) from error
    weights = {name: weight.contiguous().clone() for name, weight in model.state_dict().items()}
    for tied_name in getattr(model, "all_tied_weights_keys", {}):
        weights.pop(tied_name, None)
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    save_tokenizer(folder, expected.shape[-1])
    try:
        lm, _tokenizer = load_checkpoint(folder)
    except CheckpointError as error:
        return str(error)
    if IDS.shape[1] > lm.config.context_length:
        ids = IDS[:, : lm.config.context_length]
        return float((lm(ids) - model(ids, use_cache=False).logits).abs().max())
    return float((lm(IDS)[0] - expected).abs().max())


def save_tokenizer(folder: Path, size: int) -> None:
    vocabulary = {f"w{i}": i for i in range(size)}
    tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="w0")).save(str(folder / "tokenizer.json"))
