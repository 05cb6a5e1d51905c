"""Capture of a model's internal values: their shapes, and a pass with hooks."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import torch

from explorer.architecture.formulas import token_axes
from explorer.architecture.residual_stream import block_output_tap
from explorer.interventions import Intervention
from explorer.interventions.intervention import HEADS, KV_HEADS, index_axis
from explorer.tracing.comparison import resolve_patches
from explorer.tracing.forward_hooks import apply_interventions, forward_hooks, record_outputs, use_explicit_attention
from explorer.tracing.model_registry import ModelWeights, get_model, register_model_facts, register_tokenizer
from explorer.tracing.numpy_arrays import as_unbatched_arrays
from explorer.tracing.token_ids import check_tokens
from explorer.tracing.trace import LazyActivations, Trace
from model.config import ModelConfig
from model.layers.attention import KVCache
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM, check_finite

BYTES_PER_NUMBER = 4  # float32
PRIORITY_TAPS = ("attn.z", "attn.out", "resid_mid", "ffn.out")  # of those of a size: what the map of the model reads


def tap_shapes(config: ModelConfig, num_tokens: int) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every value of a pass, without a batch axis, in the order of the pass."""
    return {name: _shape(config, name, num_tokens) for name in _names(config)}


@lru_cache(1024)
def trace_num_bytes(config: ModelConfig, num_tokens: int) -> int:
    """Return the memory of a trace with every value in bytes, at most: values that are equal may share memory."""
    return BYTES_PER_NUMBER * sum(map(math.prod, tap_shapes(config, num_tokens).values()))


def taps_within_budget(
    config: ModelConfig, num_tokens: int, max_bytes: float, excluded: Collection[str] = ()
) -> list[str]:
    """Return names of values inside blocks that need at most `max_bytes` together, the smallest first.

    Each is included for all layers or for none: a scan over layers would recompute all blocks for one missing
    layer. Scores and patterns are never included: a pass with fused attention has none.

    Args:
        excluded: names to leave out.
    """
    kinds: dict[str, list[str]] = {}
    shapes = tap_shapes(config, num_tokens)
    for name in shapes:
        if name.startswith("blocks.") and name not in excluded and not name.endswith(("attn.scores", "attn.pattern")):
            kinds.setdefault(name.split(".", 2)[2], []).append(name)

    def size(kind: str) -> int:
        return BYTES_PER_NUMBER * sum(math.prod(shapes[name]) for name in kinds[kind])

    selected, left = [], max_bytes
    for kind in sorted(kinds, key=lambda kind: (size(kind), kind not in PRIORITY_TAPS)):
        if size(kind) <= left:
            selected, left = [*selected, *kinds[kind]], left - size(kind)
    return selected


def _shape(config: ModelConfig, name: str, num_tokens: int) -> tuple[int, ...]:
    axis = index_axis(name)
    if axis not in (HEADS, KV_HEADS):
        return num_tokens, axis.size(config)
    is_pairwise = token_axes(name) == (-2, -1)
    return axis.size(config), num_tokens, num_tokens if is_pairwise else config.d_head


@lru_cache(16)
def _names(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of all values in the order of a pass.

    They come from a pass of the narrowest possible model with one layer over one token, since all blocks are alike.
    On the meta device, where no weights are needed, operations are Python's, whose modules take two seconds to
    import.
    """
    narrow = {
        "d_model": 2 * config.num_heads,
        "head_dim": 2,
        "rotary_dim": None,
        "rope_scaling": None,
        "d_ff": 1,
        "vocab_size": 1,
    }
    with torch.random.fork_rng(devices=()):  # initialising its weights must not change the random state
        lm = TransformerLM(replace(config, num_layers=1, **narrow)).eval()
    names, order = {module: name for name, module in lm.taps.items()}, []
    with forward_hooks(names, lambda module, inputs, output: order.append(names[module])), torch.inference_mode():
        lm(torch.zeros(1, 1, dtype=torch.long))
    block_names = [name.removeprefix("blocks.0.") for name in order if name.startswith("blocks.0.")]
    first = order.index(f"blocks.0.{block_names[0]}")
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in block_names]
    return *order[:first], *blocks, *order[first + len(block_names) :]


# glibc hands large freed blocks back to the system until it has seen one of nearly 32 MB freed; from then on it keeps
# what one capture frees for the next, which is spared thousands of page faults (man mallopt, M_MMAP_THRESHOLD).
torch.empty(31 << 20, dtype=torch.uint8)


def capture(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention] = (),
    *,
    tokenizer: Tokenizer | None = None,
    max_bytes: float = math.inf,
    edits: Sequence[Intervention] | None = None,
) -> Trace:
    """Run the model once over the tokens and store every value that has a name, after interventions.

    If the values need more than `max_bytes`, the inputs and outputs of the blocks are stored, and of the values
    inside blocks as many as fit; the others are computed on access (see `explorer.tracing.trace`).

    Passes of other threads are neither captured nor changed, and the hooks are removed when this returns or raises.
    The trace does not keep the model alive: its weights can be read while something else does.

    Args:
        token_ids: 1 to context_length ids.
        interventions: applied in this order.
        tokenizer: for the tokens' texts and bytes; without it the ids stand for them.
        max_bytes: memory that the values may take.
        edits: earlier name of `interventions`.

    Raises:
        UserError: there are no tokens, more than the context length, or one that is not in the vocabulary; the
            model has no value that an intervention changes, or the source run of a patch has no value to take.
        NonFiniteLogitsError: the model's numbers are too large for its data type.
    """
    config = lm.config
    check_tokens(config, token_ids)
    interventions = interventions if edits is None else edits
    for intervention in interventions:
        intervention.check(config, lm.taps)
    interventions = resolve_patches(interventions, config, token_ids, tokenizer and tokenizer.vocabulary)
    model, ids = register_model_facts(lm), tuple(token_ids)
    if trace_num_bytes(config, len(ids)) <= max_bytes:
        values, dtype = module_outputs(lm, ids, interventions, lm.taps)
    else:
        with use_explicit_attention(lm, range(config.num_layers)):
            stored, dtype = module_outputs(lm, ids, interventions, select_taps(lm, len(ids), max_bytes), lm.final_norm)
        values = LazyActivations(stored, tap_shapes(config, len(ids)), model, ids, interventions)
    vocabulary = tokenizer.vocabulary if tokenizer else id_labels(config.vocab_size)
    facts = get_model(model)[1]
    metadata = {"edits": interventions, "model": model, "dtype": dtype}
    metadata |= {"training": facts.training, "diagnosis": facts.diagnosis}
    if tokenizer:
        register_tokenizer(lm, tokenizer)
        metadata |= {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules}
    return Trace(config, ids, vocabulary, values, ModelWeights(model), **metadata)


def module_outputs(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    modules: Mapping[str, torch.nn.Module],
    last: torch.nn.Module | None = None,
    cache: KVCache | None = None,
) -> tuple[dict[str, np.ndarray], str]:
    """Run a pass and return the outputs of modules by name, and the data type of the computation.

    The outputs are arrays without a batch axis, in the order in which they are computed. The pass ends after the
    module `last`, if there is one.

    Args:
        cache: with the keys and values of the tokens before these; the caller advances its length if the pass is
            ended.
    """
    with (
        apply_interventions(lm, interventions),
        record_outputs(modules) as outputs,
        record_outputs({"last": last} if last else {}, stops=True),
        torch.inference_mode(),
    ):
        lm(torch.tensor([token_ids], device=lm.device), cache)
    final = outputs[next(reversed(outputs))]
    check_finite(final, lm.dtype)
    return as_unbatched_arrays(outputs), str(final.dtype).removeprefix("torch.")


def taps_outside_blocks(lm: TransformerLM) -> dict[str, torch.nn.Module]:
    """Return the taps of the blocks' inputs and outputs, and all taps outside blocks."""
    output_taps = {block_output_tap(lm.config, layer) for layer in range(lm.config.num_layers)}
    return {
        name: module
        for name, module in lm.taps.items()
        if name in output_taps or name.endswith(".resid_pre") or not name.startswith("blocks.")
    }


def select_taps(lm: TransformerLM, num_tokens: int, max_bytes: float) -> dict[str, torch.nn.Module]:
    """Return `taps_outside_blocks`, and as many taps inside blocks as fit into `max_bytes`."""
    shapes, outside = tap_shapes(lm.config, num_tokens), taps_outside_blocks(lm)
    input_taps = {
        name for name in outside if name.endswith(".resid_pre")
    }  # in the memory of what leaves the block before
    budget = max_bytes - BYTES_PER_NUMBER * sum(
        math.prod(shapes[name]) for name in outside.keys() - input_taps - {"logits"}
    )
    selected = set(taps_within_budget(lm.config, num_tokens, budget, outside)) | outside.keys()
    return {name: module for name, module in lm.taps.items() if name in selected}


@cache
def id_labels(vocab_size: int) -> tuple[str, ...]:
    """Return token ids as texts, for a model without a tokenizer."""
    return tuple(map(str, range(vocab_size)))
