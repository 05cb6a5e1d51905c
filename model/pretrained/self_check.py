"""Whether a model that others trained computes here what it computes there."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from model.errors import ModelError
from model.overflow import check_finite
from model.pretrained.tokenizer import PretrainedTokenizer
from model.reading import readable
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

KNOWN_LOGITS = "known_logits.safetensors"  # `token_ids` (T,) and `logits` (T, V) of whoever wrote the folder
TEXT, MOST_TOKENS = "Once upon a time there was a fox who wanted the moon. It said: 1 + 1 = 2.", 16
# Of the largest logit: float32 rounds to 6e-8 of it, and every layer adds to that; 16 bits to 5e-4 or 4e-3, and small
# models of every family lie up to 29 times that from transformers' numbers, which are as far from the exact ones.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 32 * 2.0**-11, torch.bfloat16: 32 * 2.0**-8}


@dataclass(frozen=True)
class Agreement:
    """How a model's logits compare with others of the same weights.

    Attributes:
        reference: whose these are: "transformers", or "stored" for logits that lay beside the weights.
        largest: of |logit here − logit there| over all positions and tokens.
        scale: the largest |logit| there.
        dtype: of the model here.
    """

    reference: str
    largest: float
    scale: float
    dtype: torch.dtype = torch.float32

    @property
    def holds(self) -> bool:
        """Whether rounding explains the difference; not where it is no number."""
        return self.largest <= TOLERANCES.get(self.dtype, 1e-4) * max(1.0, self.scale)


def self_check(folder: Path, lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer) -> Agreement | None:
    """Compare with logits that lie in the folder, or else with what transformers computes of the same files where it is
    installed; None where there is neither.

    Raises:
        ModelError: the stored logits are damaged, or transformers cannot open the folder.
    """
    if has_known_logits(folder):
        token_ids, known = read_known_logits(folder)
        return agreement("stored", lm, token_ids, known)
    if folder.is_dir() and importlib.util.find_spec("transformers"):
        token_ids = ids_of(tokenizer)
        return agreement("transformers", lm, token_ids, logits_of_transformers(folder, token_ids, lm))
    return None


def has_known_logits(folder: Path) -> bool:
    return (folder / KNOWN_LOGITS).exists()


def agreement(reference: str, lm: TransformerLM, token_ids: list[int], known: torch.Tensor) -> Agreement:
    with torch.inference_mode():
        own = lm(torch.tensor([token_ids], device=lm.device))[0].float().cpu()  # (T, V)
    check_finite(own, lm.dtype)
    if known.shape != own.shape:
        raise ModelError("the logits beside it are {got}, its own {own}", got=tuple(known.shape), own=tuple(own.shape))
    return Agreement(reference, (own - known).abs().max().item(), known.abs().max().item(), lm.dtype)


def ids_of(tokenizer: Tokenizer | PretrainedTokenizer) -> list[int]:
    """The tokens that are compared."""
    return [*tokenizer.beginning, *tokenizer.encode(TEXT)][:MOST_TOKENS]


def logits_of_transformers(folder: Path, token_ids: list[int], lm: TransformerLM) -> torch.Tensor:
    """(T, V) as float32, computed from the same files in the type of our model; no code of theirs is run, no pickled
    weights are read."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoModelForCausalLM  # takes seconds, and most visitors have it not

    safe = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=lm.dtype, **safe).to(lm.device).eval()
        with torch.inference_mode():
            return model(torch.tensor([token_ids], device=lm.device)).logits[0].float().cpu()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise ModelError("transformers cannot open it: {why}", why=error) from None


def save_known_logits(folder: Path, lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer):
    """Write what the model computes of a few tokens."""
    token_ids = ids_of(tokenizer)
    with torch.inference_mode():
        logits = lm(torch.tensor([token_ids], device=lm.device))[0].float().cpu().contiguous()
    save_file({"token_ids": torch.tensor(token_ids), "logits": logits}, folder / KNOWN_LOGITS)


def read_known_logits(folder: Path) -> tuple[list[int], torch.Tensor]:
    """Token ids and (T, V) in float32; ModelError where the file has not both."""
    with safe_open(readable(folder / KNOWN_LOGITS), framework="pt") as file:
        if set(file.keys()) != {"token_ids", "logits"}:
            raise ModelError("its {file} does not hold token_ids and logits", file=KNOWN_LOGITS)
        return file.get_tensor("token_ids").tolist(), file.get_tensor("logits").float()
