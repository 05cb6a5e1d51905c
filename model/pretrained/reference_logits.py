"""Reference logits: check that a pretrained model has the same logits here as in the original."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from model.checkpoint_reader import require_readable
from model.errors import ModelError
from model.pretrained.tokenizer import PretrainedTokenizer
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM, check_finite

REFERENCE_LOGITS = "known_logits.safetensors"  # `token_ids` (T,) and `logits` (T, V) of whoever wrote the folder
TEXT, MAX_TOKENS = "Once upon a time there was a fox who wanted the moon. It said: 1 + 1 = 2.", 16
# Of the largest logit: float32 rounds to 6e-8 of it, and every layer adds to that; 16 bits to 5e-4 or 4e-3, and small
# models of every family lie up to 29 times that from transformers' numbers, which are as far from the exact ones.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 32 * 2.0**-11, torch.bfloat16: 32 * 2.0**-8}


@dataclass(frozen=True)
class LogitAgreement:
    """Comparison of a model's logits with reference logits of the same weights.

    Attributes:
        reference: source of the reference: "transformers", or "stored" for logits in the model's folder.
        max_difference: largest |logit − reference logit| over all positions and tokens.
        scale: largest |reference logit|.
        dtype: of the model here.
    """

    reference: str
    max_difference: float
    scale: float
    dtype: torch.dtype = torch.float32

    @property
    def holds(self) -> bool:
        """True if rounding explains the difference; False if it is NaN."""
        return self.max_difference <= TOLERANCES.get(self.dtype, 1e-4) * max(1.0, self.scale)


def compare_with_reference(
    folder: Path, lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer
) -> LogitAgreement | None:
    """Compare with the logits stored in the folder, or else with those of transformers, if it is installed.

    None if there is neither.

    Raises:
        ModelError: the stored logits are damaged, or transformers cannot open the folder.
    """
    if has_reference_logits(folder):
        token_ids, reference_logits = read_reference_logits(folder)
        return compare_logits("stored", lm, token_ids, reference_logits)
    if folder.is_dir() and importlib.util.find_spec("transformers"):
        token_ids = reference_token_ids(tokenizer)
        return compare_logits("transformers", lm, token_ids, transformers_logits(folder, token_ids, lm))
    return None


def has_reference_logits(folder: Path) -> bool:
    """Return whether a folder has stored reference logits."""
    return (folder / REFERENCE_LOGITS).exists()


def compare_logits(
    reference: str, lm: TransformerLM, token_ids: list[int], reference_logits: torch.Tensor
) -> LogitAgreement:
    """Compare the model's logits (T, V) with the reference's; ModelError for another shape or NaN."""
    with torch.inference_mode():
        logits = lm(torch.tensor([token_ids], device=lm.device))[0].float().cpu()  # (T, V)
    check_finite(logits, lm.dtype)
    if reference_logits.shape != logits.shape:
        raise ModelError(
            "the stored reference logits have the shape {got}, the model’s logits {own}",
            got=tuple(reference_logits.shape),
            own=tuple(logits.shape),
        )
    return LogitAgreement(
        reference, (logits - reference_logits).abs().max().item(), reference_logits.abs().max().item(), lm.dtype
    )


def reference_token_ids(tokenizer: Tokenizer | PretrainedTokenizer) -> list[int]:
    """Return the token ids of the text whose logits are compared."""
    return [*tokenizer.bos_ids, *tokenizer.encode(TEXT)][:MAX_TOKENS]


def transformers_logits(folder: Path, token_ids: list[int], lm: TransformerLM) -> torch.Tensor:
    """Return transformers' logits (T, V), as float32, of the same files in our model's dtype.

    No code from the folder is run, and no pickled weights are read.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoModelForCausalLM  # takes seconds, and most visitors have it not

    options = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=lm.dtype, **options).to(lm.device).eval()
        with torch.inference_mode():
            return model(torch.tensor([token_ids], device=lm.device)).logits[0].float().cpu()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise ModelError("transformers cannot open it: {why}", why=error) from None


def save_reference_logits(folder: Path, lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer):
    """Write the model's logits of a few tokens."""
    token_ids = reference_token_ids(tokenizer)
    with torch.inference_mode():
        logits = lm(torch.tensor([token_ids], device=lm.device))[0].float().cpu().contiguous()
    save_file({"token_ids": torch.tensor(token_ids), "logits": logits}, folder / REFERENCE_LOGITS)


def read_reference_logits(folder: Path) -> tuple[list[int], torch.Tensor]:
    """Return token ids and logits (T, V) in float32; ModelError unless the file has both."""
    with safe_open(require_readable(folder / REFERENCE_LOGITS), framework="pt") as file:
        if set(file.keys()) != {"token_ids", "logits"}:
            raise ModelError("its {file} does not hold token_ids and logits", file=REFERENCE_LOGITS)
        return file.get_tensor("token_ids").tolist(), file.get_tensor("logits").float()
