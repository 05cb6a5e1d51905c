"""What is done before a module is walked: tokens for it to read, weights in which nothing hides, and short vectors for
its norms."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.formulas import NORMS
from explorer.own_module.names import Match, Part
from explorer.own_module.observing import Seen
from explorer.own_module.steps import PROBE
from explorer.own_module.wiring import WIRINGS
from model.config import ModelConfig

EXAMPLE_TOKENS, SEED = 17, 0
SIZES = 1e-9, 1e-13, 1e6  # mean squares at which other ε count, and none, and one beside the reciprocal root


def some_ids(found: Match, config: ModelConfig | None) -> list[int]:
    size = len(found.parts["token_embedding"].weight) if "token_embedding" in found.parts else 1
    length = min(EXAMPLE_TOKENS, config.context_length if config else EXAMPLE_TOKENS)
    if "position_embedding" in found.parts:
        length = min(length, len(found.parts["position_embedding"].weight))
    return torch.randint(size, (length,), generator=torch.Generator().manual_seed(SEED)).tolist()


def drawn(found: Match) -> list[str]:
    """Draw the gains and biases that training did not touch, in place; says so."""
    generator, gains, biases = torch.Generator().manual_seed(SEED), 0, 0
    for name, part in found.parts.items():
        if "norm" in name and bool((part.weight == 1).all()):
            part.weight.copy_(0.5 + torch.rand(part.weight.shape, generator=generator))
            gains += 1
        if part.bias is not None and bool((part.bias == 0).all()):
            part.bias.copy_(torch.randn(part.bias.shape, generator=generator) / 10)
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


def completed(found: Match, placement: str = "pre", draws: bool = True) -> tuple[Match, list[str]]:
    """With gains of the norms that the module has none of, so that their absence is a slip like another; says so.

    Args:
        placement: of the reference's norms.
        draws: whether gains are drawn at random; else they are 1.
    """
    table = found.parts.get("token_embedding")
    wanted = [f"blocks.{layer}.{name}" for layer in range(found.num_layers) for name in ("attn_norm", "ffn_norm")]
    wanted += [] if placement == "post" else ["final_norm"]
    missing = [name for name in wanted if name not in found.parts] if table and placement in WIRINGS else []
    if not missing:
        return found, []
    generator, width = torch.Generator().manual_seed(SEED), table.weight.shape[1]
    gains = {name: 0.5 + torch.rand(width, generator=generator) if draws else torch.ones(width) for name in missing}
    parts = {**found.parts, **{name: Part(gain) for name, gain in gains.items()}}
    note = _(
        "The module has no weights for {count} norms of the reference, such as {name}: theirs are drawn at random.",
        count=len(missing),
        name=missing[-1],
    )
    return replace(found, parts=parts), [note]


@torch.no_grad()
def probe(student: nn.Module, found: Match, seen: Seen, config: ModelConfig) -> None:
    """Note what norms make of vectors as short as their ε counts, and of longer ones."""
    for name, part in found.parts.items():
        x = seen.values.get(f"{name}.in")
        if x is None or not part.module or name.split(".")[-1] not in NORMS:
            continue
        size = x.square().mean().sqrt()
        if not torch.isfinite(size) or size == 0:
            continue
        short = torch.cat([x * (mean_square**0.5 / size) for mean_square in (config.norm_eps, *SIZES)])  # (4 T, D)
        try:
            given = student.get_submodule(part.module)(short[None])
        except Exception:  # nothing is known then, and the run itself went well
            continue
        if isinstance(given, Tensor) and given.numel() == short.numel():
            seen.values[f"{name}.{PROBE}.in"] = short
            seen.values[f"{name}.{PROBE}.out"] = given.detach().float().reshape(short.shape)
