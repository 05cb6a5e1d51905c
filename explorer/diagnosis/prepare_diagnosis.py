"""Preparation of a diagnosis: example tokens, randomised untrained weights, and probes of the norms."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from explorer.diagnosis.block_dataflow import DATAFLOWS
from explorer.diagnosis.match_weights import WeightLocation, WeightMatch
from explorer.diagnosis.record_values import RecordedValues
from explorer.diagnosis.reference_formulas import NORMS
from explorer.diagnosis.segments import PROBE
from explorer.translations import _
from model.config import ModelConfig

NUM_EXAMPLE_TOKENS, SEED = 17, 0
PROBE_MEAN_SQUARES = (
    1e-9,
    1e-13,
    1e6,
)  # mean squares: ε dominates, vanishes, or matters beside the reciprocal root


def draw_random_ids(match: WeightMatch, config: ModelConfig | None) -> list[int]:
    """Return random token ids that fit the vocabulary and the context."""
    size = len(match.locations["token_embedding"].weight) if "token_embedding" in match.locations else 1
    length = min(NUM_EXAMPLE_TOKENS, config.context_length if config else NUM_EXAMPLE_TOKENS)
    if "position_embedding" in match.locations:
        length = min(length, len(match.locations["position_embedding"].weight))
    return torch.randint(size, (length,), generator=torch.Generator().manual_seed(SEED)).tolist()


def randomise_untrained(match: WeightMatch) -> list[str]:
    """Randomise in place gains that are all 1 and biases that are all 0; return a note about it."""
    generator, gains, biases = torch.Generator().manual_seed(SEED), 0, 0
    for name, location in match.locations.items():
        if "norm" in name and bool((location.weight == 1).all()):
            location.weight.copy_(0.5 + torch.rand(location.weight.shape, generator=generator))
            gains += 1
        # joined biases are copies of the module's
        if location.bias is not None and not location.heads and bool((location.bias == 0).all()):
            location.bias.copy_(torch.randn(location.bias.shape, generator=generator) / 10)
            biases += 1
    if not gains + biases:
        return []
    return [
        _(
            "{gains} gains that were all 1 and {biases} biases that were all 0, as before training, are drawn at "
            "random in both: what is left out would not show.",
            gains=gains,
            biases=biases,
        )
    ]


def add_missing_gains(match: WeightMatch, placement: str = "pre", draws: bool = True) -> tuple[WeightMatch, list[str]]:
    """Add gains for norms that the module lacks, so that a missing norm is found as a bug; also return notes.

    Args:
        placement: of the reference's norms.
        draws: whether gains are random; else they are 1.
    """
    table = match.locations.get("token_embedding")
    required = [f"blocks.{layer}.{name}" for layer in range(match.num_layers) for name in ("attn_norm", "ffn_norm")]
    required += [] if placement == "post" else ["final_norm"]
    missing = [name for name in required if name not in match.locations] if table and placement in DATAFLOWS else []
    if not missing:
        return match, []
    generator, width = torch.Generator().manual_seed(SEED), table.weight.shape[1]
    gains = {name: 0.5 + torch.rand(width, generator=generator) if draws else torch.ones(width) for name in missing}
    locations = {**match.locations, **{name: WeightLocation(gain) for name, gain in gains.items()}}
    note = _(
        "The module has no weights for {count} norms of the reference, such as {name}: theirs are drawn at random.",
        count=len(missing),
        name=missing[-1],
    )
    return replace(match, locations=locations), [note]


@torch.no_grad()
def probe_norms(student: nn.Module, match: WeightMatch, recorded: RecordedValues, config: ModelConfig) -> None:
    """Record the norms' outputs for vectors so short that their ε matters, and for long ones."""
    for name, location in match.locations.items():
        x = recorded.values.get(f"{name}.in")
        if x is None or not location.module or name.split(".")[-1] not in NORMS:
            continue
        size = x.square().mean().sqrt()
        if not torch.isfinite(size) or size == 0:
            continue
        short = torch.cat(
            [x * (mean_square**0.5 / size) for mean_square in (config.norm_eps, *PROBE_MEAN_SQUARES)]
        )  # (4 T, D)
        try:
            output = student.get_submodule(location.module)(short[None])
        except Exception:  # then there is no probe; the run itself succeeded
            continue
        if isinstance(output, Tensor) and output.numel() == short.numel():
            recorded.values[f"{name}.{PROBE}.in"] = short
            recorded.values[f"{name}.{PROBE}.out"] = output.detach().float().reshape(short.shape)
