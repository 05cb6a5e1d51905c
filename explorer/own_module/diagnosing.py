"""Where a module parts from the reference."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.described import configs, with_context
from explorer.own_module.formulas import reference as formulas_of
from explorer.own_module.from_module import TOLERANCE, check_ids, difference
from explorer.own_module.names import Match, Table, match
from explorer.own_module.observing import Seen, observe
from explorer.own_module.running import logits_of, own_copy
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Beginning, Block, End
from explorer.own_module.walking import Off, Walk
from explorer.own_module.weights import with_weights
from explorer.own_module.words import told
from explorer.state.errors import UserError
from explorer.tracing.capture import outputs_of
from explorer.tracing.diagnosis import Difference, Report, Row
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

EXAMPLE_TOKENS, SEED = 17, 0
SHORTER = 1e-9, 1e-13  # mean squares at which other ε count, and none
HEAD_TAPS = "q", "k", "v", "z"


class Diagnosis(Report):
    """A report that says itself in words."""

    def __str__(self) -> str:
        return told(self)


def diagnose(
    module: nn.Module,
    reference: TransformerLM | ModelConfig | None = None,
    names: Table | None = None,
    *,
    example_ids: Sequence[int] | None = None,
) -> Diagnosis:
    """Give the reference the module's weights, let both read the same tokens, and walk the values in order: each is
    compared with what the reference makes of the module's own values before it, so that a slip shows where it is, and
    none hides another. What differs is explained by slips that are tried: those of the reference's computation with
    which it gives what the module has.

    The module is neither changed nor kept. Gains and biases that are all 1 or 0, as before training, are drawn at
    random in the copy, since what is left out would not show.

    Args:
        reference: what the module should be: a model, of which the config alone counts, or its config; None: what its
            weights and attributes say, see `from_module`.
        names: the module's names -> ours, for what no known spelling has.
        example_ids: tokens that are read; None: 17 drawn at random.

    Raises:
        UserError: the module fails, has no weights, or has others than the reference.
    """
    began = time.monotonic()
    student = own_copy(module)
    found = match(student, names)
    notes = drawn(found)
    config = getattr(reference, "config", reference)
    ids = list(example_ids) if example_ids is not None else some_ids(found, config)
    if config is None:
        config = likeliest(student, found, ids)
    config = with_context(config, len(ids) + 1)
    if config.norm_placement != "pre":
        raise UserError(
            _(
                "The reference normalises elsewhere ({placement}): only models that normalise first are walked.",
                placement=config.norm_placement,
            )
        )
    check_ids(ids, found)
    lm = with_weights(config, found)
    seen = observe(student, found, ids, config.vocab_size)
    probe(student, found, seen, config)
    report = walked(lm, seen)
    name = type(module).__name__
    return replace(report, seconds=time.monotonic() - began, module=name, spelling=found.spelling, notes=tuple(notes))


def some_ids(found: Match, config: ModelConfig | None) -> list[int]:
    size = len(found.parts["token_embedding"].weight) if "token_embedding" in found.parts else 1
    length = min(EXAMPLE_TOKENS, config.context_length if config else EXAMPLE_TOKENS)
    if "position_embedding" in found.parts:
        length = min(length, len(found.parts["position_embedding"].weight))
    return torch.randint(size, (length,), generator=torch.Generator().manual_seed(SEED)).tolist()


def config_of(module: nn.Module, names: Table | None = None) -> ModelConfig:
    """What a module was to be, as far as its weights and attributes say; errors are those of `diagnose`."""
    student = own_copy(module)
    found = match(student, names)
    return likeliest(student, found, some_ids(found, None))


def likeliest(student: nn.Module, found: Match, ids: Sequence[int]) -> ModelConfig:
    """What the module was to be: of the first config that its weights and attributes tell of; where they do not say how
    many heads there are, with as many as make the logits most alike. How it rotates, by whose names it has: where these
    are nobody's, as it does if that is one of the known ways."""
    first = next(configs(student, found))
    tried = [
        config
        for config in configs(student, found)
        if found.spelling == "order" or config == replace(first, num_heads=config.num_heads)
    ]
    if len(tried) == 1:
        return first
    known = logits_of(student, ids, first.vocab_size)
    apart = {config: difference(with_weights(with_context(config, len(ids)), found), ids, known)[0] for config in tried}
    best = min(apart, key=apart.get)
    return best if found.spelling != "order" or apart[best] <= TOLERANCE * known.abs().max() else first


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


@torch.no_grad()
def probe(student: nn.Module, found: Match, seen: Seen, config: ModelConfig) -> None:
    """Note what norms make of vectors as short as their ε counts."""
    for name, part in found.parts.items():
        x = seen.values.get(f"{name}.in")
        if x is None or not part.module or name.split(".")[-1] not in ("attn_norm", "ffn_norm", "final_norm"):
            continue
        size = x.square().mean().sqrt()
        if not torch.isfinite(size) or size == 0:
            continue
        short = torch.cat([x * (mean_square**0.5 / size) for mean_square in (config.norm_eps, *SHORTER)])  # (3 T, D)
        try:
            given = student.get_submodule(part.module)(short[None])
        except Exception:  # nothing is known then, and the run itself went well
            continue
        if isinstance(given, Tensor) and given.numel() == short.numel():
            seen.values[f"{name}.{PROBE}.in"] = short
            seen.values[f"{name}.{PROBE}.out"] = given.detach().float().reshape(short.shape)


@torch.no_grad()
def walked(lm: TransformerLM, seen: Seen) -> Diagnosis:
    """The differences of all scopes in order, those of the same cause together, and every value."""
    config, weights, formulas = lm.config, lm.state_dict(), formulas_of(lm.config)
    own, _dtype = outputs_of(lm, seen.token_ids, (), lm.taps)
    walks = [Walk(Beginning(config, seen, weights), formulas)]
    entry = seen.values.get("blocks.0.in", torch.tensor(own["embed"]))
    known: list[Slip] = []
    for layer in range(config.num_layers):
        block = Block(config, seen, weights, layer, entry)
        walks.append(Walk(block, formulas, known))
        known += [slip for _difference, slips in walks[-1].differences for slip in slips if slip not in known]
        entry = block.value("resid_post", walks[-1].formulas)
    walks.append(Walk(End(config, seen, weights, entry), formulas))
    rows = [row for walk in walks for row in rows_of(walk, own)]
    apart = Off.of(seen.values["logits"], torch.tensor(own["logits"]))
    differences = together([difference for walk in walks for difference, _slips in walk.differences])
    return Diagnosis(tuple(differences), tuple(rows), apart.largest, apart.scale, seen.token_ids, 0.0)


def rows_of(walk: Walk, own: dict[str, np.ndarray]):
    scope = walk.scope
    for tap in (tap for tap in scope.taps if not tap.endswith(PROBE)):
        name = f"{scope.start}{tap}"
        if tap not in scope.seen:
            yield Row(name, float("nan"), float("nan"), float("nan"))
            continue
        off, reference = walk.first_off[tap], torch.tensor(own[name])
        if tap.split(".")[-1] in HEAD_TAPS and reference.ndim == 3:
            reference = reference.transpose(0, 1).flatten(-2)
        run = Off.of(scope.seen[tap], reference)
        share = run.largest / run.scale if run.scale else run.largest
        yield Row(name, off.times, off.largest, share, tuple(off.by_position.tolist()))


def together(differences: Sequence[Difference]) -> list[Difference]:
    """Those of the same cause as one, at the first place."""
    found: list[Difference] = []
    for each in differences:
        same = [i for i, one in enumerate(found) if each.cause and one.cause and one.cause == each.cause]
        if same:
            found[same[0]] = replace(found[same[0]], also=(*found[same[0]].also, each.tap))
        else:
            found.append(each)
    return found
