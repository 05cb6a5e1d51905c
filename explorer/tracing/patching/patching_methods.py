"""Activation patching, attribution patching (its estimate by gradients), path patching; all runs of an experiment."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from explorer.errors import UserError
from explorer.interventions import Intervention
from explorer.tracing.capture import capture
from explorer.tracing.comparison import align_values
from explorer.tracing.forward_hooks import forward_hooks, record_outputs
from explorer.tracing.jobs import JobSteps, check_budget, chunk_tokens, run_to_completion
from explorer.tracing.patching.patching_setup import (
    BY_POSITION,
    METRIC_FUNCTIONS,
    METRICS,
    PatchingSetup,
    Receiver,
    check_component,
    component_taps,
    normalise_changes,
    num_layers_before,
)
from explorer.translations import _
from model.layers.attention import attention_pattern, attention_scores, causal_mask, repeat_heads, softcap
from model.transformer_lm import TransformerLM
from model.weight_placement import read_weight


def activation_patching(
    lm: TransformerLM,
    clean_ids: Sequence[int],
    corrupted_ids: Sequence[int],
    answer: int,
    wrong: int,
    *,
    part: str,
    direction: str = "denoise",
    metric: str = "logit_difference",
    progress: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """Return the effect of patching each node of a component alone from one run into the other.

    Meng et al. 2022, arXiv:2202.05262, appendix B; Zhang & Nanda 2023, arXiv:2309.16042. Exact: every effect is a
    run of its own, batched from its layer on. See `PatchingSetup.normalised_effects` for the scale.

    Args:
        answer, wrong: ids of the right and the wrong next token; "log_probability" and "probability" are the
            answer's.
        part: "resid_pre", "attn.out" or "ffn.out" of a layer and a position; "attn.z", "attn.q", "attn.k", "attn.v"
            or "attn.pattern" of a layer and a head, at all positions at once.
        direction: "denoise" patches clean values into the corrupted run, "noise" the other way round.
        metric: at the last position: "logit_difference", "log_probability" or "probability", which hides negative
            effects.
        progress: called with the share that is done; an exception that it raises ends the work.

    Returns:
        (L, T) float64 for positions, (L, H) for heads, (L, G) for keys and values that G heads share; NaN if the
        clean and corrupted metrics differ by less than 1e-6.

    Raises:
        UserError: the prompts differ in length, or a name or id is unknown.
    """
    check_component(part)
    setup = PatchingSetup(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    taps = component_taps(part, lm.config.num_layers)
    source_values, metrics = setup.source_values(taps), []
    row = METRICS.index(metric)
    for layer, tap in enumerate(taps):
        metrics.append(run_to_completion(patch_each_node(setup, layer, tap, source_values[tap]))[row])
        progress((layer + 1) / len(taps))
    return setup.normalised_effects(np.stack(metrics))


def patch_each_node(
    setup: PatchingSetup, layer: int, tap: str, source_value: Tensor, done: int = 0
) -> Generator[int, None, np.ndarray]:
    """Compute every metric of the target run with each node of a tap patched alone, in batches.

    Yields how many are done, including `done` earlier ones; returns (M, P). A node with the target's own value changes
    nothing and is not run, such as those of the tokens before the first that differs.

    Args:
        source_value: (1, P, …), the source run's value; for neurons (1, T, P).
    """
    lm, ids = setup.lm, setup.batch(setup.target_ids)
    is_neurons = tap.endswith("ffn.hidden")
    with record_outputs({tap: lm.taps[tap]}) as target_values, torch.inference_mode():
        unpatched = setup.measure_all(lm(ids, last_only=True))  # (M, 1)
    differs = (source_value != target_values[tap])[0]
    nodes = (differs.any(0) if is_neurons else differs.flatten(1).any(1)).nonzero().flatten().cpu()
    metrics = unpatched.repeat(1, source_value.shape[-1 if is_neurons else 1])  # (M, P)
    for indices in filter(len, nodes.split(max(1, chunk_tokens(lm.config) // ids.shape[1]))):
        check_budget(tokens=len(indices) * ids.shape[1])
        rows = torch.arange(len(indices))

        def expand(module, inputs, x: Tensor, runs: int = len(indices)) -> Tensor:
            return x.expand(runs, -1, -1)  # (1, T, D) -> (N, T, D)

        def patch(module, inputs, value: Tensor, rows: Tensor = rows, indices: Tensor = indices) -> Tensor:
            value = value.clone()
            if is_neurons:
                value[rows, :, indices] = source_value[0, :, indices].T
            else:
                value[rows, indices] = source_value[0, indices]
            return value

        hooks = forward_hooks([lm.blocks[layer].resid_pre], expand), forward_hooks([lm.taps[tap]], patch)
        with hooks[0], hooks[1], torch.inference_mode():
            metrics[:, indices] = setup.measure_all(lm(ids, last_only=True))
        yield done + int(indices[-1]) + 1
    yield done + metrics.shape[1]
    return metrics.numpy()


def attribution_patching(
    lm: TransformerLM,
    clean_ids: Sequence[int],
    corrupted_ids: Sequence[int],
    answer: int,
    wrong: int,
    *,
    part: str,
    direction: str = "denoise",
    metric: str = "logit_difference",
    progress: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """Return an estimate of the effects of `activation_patching`.

    The estimate is (source value − target value) · ∂metric / ∂value at the target's value (Nanda 2023). For queries
    and keys the softmax is recomputed with the source's, and only what follows the pattern is linearised, since
    saturated attention has vanishing gradients (AtP*, Kramár et al. 2024, arXiv:2403.00745, §3.1).

    Args, Returns and Raises: as `activation_patching`.
    """
    check_component(part)
    setup = PatchingSetup(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    effects = estimate_effects(setup, part)
    progress(1.0)
    return effects


def estimate_effects(setup: PatchingSetup, component: str) -> np.ndarray:
    """Return the estimated effects of a component's nodes, (L, P)."""
    changes = torch.stack([(step * slope).sum(-1) for step, slope in differences_and_gradients(setup, component)])
    return normalise_changes(changes.cpu().double().numpy(), *setup.unpatched_metrics)


def differences_and_gradients(setup: PatchingSetup, component: str) -> list[tuple[Tensor, Tensor]]:
    """Return for each layer the difference of each node's numbers, (P, N), and the metric's gradient at them, (P, N).

    For queries and keys, the numbers are those of the patterns that follow from them.
    """
    if component in ("attn.q", "attn.k"):
        return _pattern_factors(setup, component)
    taps = component_taps(component, setup.lm.config.num_layers)
    source_values, (target_values, slopes) = setup.source_values(taps), _gradients(setup, taps)
    return [((source_values[tap] - target_values[tap])[0].flatten(1), slopes[tap][0].flatten(1)) for tap in taps]


def _pattern_factors(setup: PatchingSetup, component: str) -> list[tuple[Tensor, Tensor]]:
    lm, config = setup.lm, setup.lm.config
    suffixes = ["_rot" if config.has_rope(layer) else "" for layer in range(config.num_layers)]
    queries, keys = ([f"blocks.{i}.attn.{letter}{suffix}" for i, suffix in enumerate(suffixes)] for letter in "qk")
    patterns = component_taps("attn.pattern", config.num_layers)
    source_values = _rotate_source(setup, component, queries if component == "attn.q" else keys)
    target_values, slopes = _gradients(setup, [*queries, *keys, *patterns])
    mixed = target_values | source_values  # the donor's queries with the recipient's keys, or the other way round
    length, nodes = target_values[queries[0]].shape[-2], config.num_heads if component == "attn.q" else config.kv_heads
    factors = []
    for layer, (q, k, pattern) in enumerate(zip(queries, keys, patterns, strict=True)):
        mask = causal_mask(length, length, device=lm.device, window=config.window(layer))
        keys_of_all = repeat_heads(mixed[k], config.num_heads)
        scores = attention_scores(mixed[q], keys_of_all, config.score_divisor)  # (1, H, T, T)
        step = attention_pattern(softcap(scores, config.score_cap), mask) - target_values[pattern]
        factors.append((step.reshape(nodes, -1), slopes[pattern].reshape(nodes, -1)))
    return factors


def _rotate_source(setup: PatchingSetup, component: str, taps: Sequence[str]) -> dict[str, Tensor]:
    """Return the source's queries or keys after rotation to the target's positions, by tap."""
    lm = setup.lm
    with ExitStack() as stack:
        for name, value in setup.source_values(component_taps(component, lm.config.num_layers)).items():
            stack.enter_context(forward_hooks([lm.taps[name]], lambda module, inputs, output, value=value: value))
        return setup.record(setup.target_ids, taps)


def _gradients(setup: PatchingSetup, taps: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the target run's values at taps, and the metric's gradients at them."""
    lm = setup.lm

    def enable_gradient(module, inputs, x: Tensor) -> Tensor:
        return x.detach().requires_grad_()  # whether or not the weights have gradients

    gradient_modes = torch.inference_mode(False), torch.enable_grad()  # also if the caller has disabled gradients
    with (
        gradient_modes[0],
        gradient_modes[1],
        forward_hooks([lm.embed], enable_gradient),
        record_outputs({name: lm.taps[name] for name in taps}) as values,
    ):
        logits = lm(setup.batch(setup.target_ids))
        metric = METRIC_FUNCTIONS[setup.metric](logits[0, -1], setup.answer, setup.wrong)
        # what the last position does not read has no slope: late layers' values at earlier positions
        slopes = torch.autograd.grad(metric, [values[tap] for tap in taps], allow_unused=True, materialize_grads=True)
    return {tap: value.detach() for tap, value in values.items()}, dict(zip(taps, slopes, strict=True))


def path_patching(
    lm: TransformerLM,
    clean_ids: Sequence[int],
    corrupted_ids: Sequence[int],
    answer: int,
    wrong: int,
    *,
    receiver: Receiver,
    sender: tuple[int, int] | None = None,
    direction: str = "denoise",
    metric: str = "logit_difference",
    through_ffn: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> np.ndarray | float:
    """Return the effect of a sending head on the prediction along its direct path to a receiver.

    Wang et al. 2022, arXiv:2211.00593, §3.1 and appendix B. First the target run is computed with the sender's z
    from the source run, while the outputs of every other head and every feed-forward are frozen at the target's
    values. The residual stream then differs by the sender's output, every norm on its path is recomputed, and the
    receiver reads it. Then the target run is computed with the receiver's q, k or v from the first run, at all
    positions, and nothing frozen.

    Args:
        receiver: "logits", or (layer, head, "q", "k" or "v"); for shared keys and values the head is one of those.
        sender: (layer, head); None for all of them.
        through_ffn: whether the feed-forwards between the two are recomputed instead of frozen, as Wang et al. do.
        progress: called with the share that is done; an exception that it raises ends the work.

    The other arguments are those of `activation_patching`, and so is the scale.

    Returns:
        (L, H) float64 for all senders, 0 if the sender comes after the receiver; for one sender a float.

    Raises:
        UserError: the prompts differ in length, or a name or id is unknown.
    """
    setup = PatchingSetup(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    _check(lm, receiver, sender)
    row, num_layers = METRICS.index(metric), num_layers_before(lm.config, receiver)
    layers = range(num_layers) if sender is None else range(sender[0], min(sender[0] + 1, num_layers))
    heads = range(lm.config.num_heads) if sender is None else [sender[1]]
    steps = patch_direct_paths(setup, receiver, layers, heads, through_ffn)
    metrics = run_to_completion(steps, lambda done: progress(done / len(layers)))[row]
    effects = setup.normalised_effects(metrics)
    effects[[layer for layer in range(lm.config.num_layers) if layer not in layers]] = 0.0
    if not np.isfinite(setup.normalised_effects(np.zeros(1))).all():
        effects[:] = np.nan
    return effects if sender is None else float(effects[sender[0], 0])


def patch_direct_paths(
    setup: PatchingSetup, receiver: Receiver, layers: Sequence[int], heads: Sequence[int], through_ffn: bool = False
) -> Generator[int, None, np.ndarray]:
    """Compute every metric after patching the direct path from each of some heads to the receiver, layer by layer.

    Yields how many layers are done; returns (M, L, N), NaN for other layers.
    """
    lm, config = setup.lm, setup.lm.config
    taps = [component_taps(name, config.num_layers) for name in ("attn.z", "attn.out", "ffn.out")]
    target_values = setup.record(setup.target_ids, sum(taps, []))
    source_values = setup.source_values(taps[0])
    metrics = np.full((len(METRICS), config.num_layers, len(heads)), np.nan)
    heads, length = torch.tensor(heads), len(setup.target_ids)
    for done, layer in enumerate(layers):
        z = f"blocks.{layer}.attn.z"
        for batch in torch.arange(len(heads)).split(max(1, chunk_tokens(config, 2) // length)):
            check_budget(tokens=2 * len(batch) * length)
            sent = _head_writes(lm, layer, heads[batch], source_values[z] - target_values[z])  # (N, T, D)
            metrics[:, layer, batch.numpy()] = _run_receiver(setup, target_values, layer, sent, receiver, through_ffn)
            yield done + (int(batch[-1]) + 1 == len(heads))
    return metrics


def _head_writes(lm: TransformerLM, layer: int, heads: Tensor, z: Tensor) -> Tensor:
    """Return the outputs of heads to the stream, without the bias: z (1, H, T, d) -> (N, T, D)."""
    weight = read_weight(lm, f"blocks.{layer}.attn.o_proj.weight").to(z.device)
    weight = weight.unflatten(1, (lm.config.num_heads, -1))  # (D, H, d)
    return torch.einsum("nti,oni->nto", z[0, heads], weight[:, heads])


def _run_receiver(
    setup: PatchingSetup,
    target_values: dict[str, Tensor],
    layer: int,
    sent: Tensor,
    receiver: Receiver,
    through_ffn: bool,
) -> np.ndarray:
    """Return every metric, (M, N), after only the receiver read the changes `sent`, (N, T, D), of a layer's output."""
    lm, ids = setup.lm, setup.batch(setup.target_ids)
    with torch.inference_mode():
        if receiver == "logits":
            with _freeze_writes(lm, target_values, layer, sent, through_ffn):
                return setup.measure_all(lm(ids, last_only=True)).numpy()
        reading_layer, head, name = receiver
        tap = lm.taps[f"blocks.{reading_layer}.attn.{name}"]
        with _freeze_writes(lm, target_values, layer, sent, through_ffn), record_outputs({name: tap}) as read:
            lm(ids)

        def patch(module, inputs, value: Tensor) -> Tensor:
            value = value.clone()  # (N, H, T, d)
            value[:, head] = read[name][:, head]
            return value

        with _expand_batch(lm, reading_layer, len(sent)), forward_hooks([tap], patch):
            return setup.measure_all(lm(ids, last_only=True)).numpy()


@contextmanager
def _freeze_writes(
    lm: TransformerLM, target_values: dict[str, Tensor], layer: int, sent: Tensor, through_ffn: bool
) -> Iterator[None]:
    """Freeze the outputs of all sublayers from a layer on at the target's values, plus the changes `sent`."""

    def writes(value: Tensor) -> Callable:
        return lambda module, inputs, output: value.expand_as(output)

    with ExitStack() as stack:
        stack.enter_context(_expand_batch(lm, layer, len(sent)))
        for later in range(layer, lm.config.num_layers):
            attention, ffn = f"blocks.{later}.attn.out", f"blocks.{later}.ffn.out"
            stack.enter_context(
                forward_hooks([lm.taps[attention]], writes(target_values[attention] + (sent if later == layer else 0)))
            )
            if not through_ffn:
                stack.enter_context(forward_hooks([lm.taps[ffn]], writes(target_values[ffn])))
        yield


def _expand_batch(lm: TransformerLM, layer: int, num_runs: int):
    """Expand the batch of a pass to `num_runs` from a layer on."""
    return forward_hooks([lm.blocks[layer].resid_pre], lambda module, inputs, x: x.expand(num_runs, -1, -1))


def _check(lm: TransformerLM, receiver: Receiver, sender: tuple[int, int] | None):
    config = lm.config
    if receiver != "logits":
        message = _('wanted "logits", or a layer, a head and "q", "k" or "v", got {got!r}', got=receiver)
        if isinstance(receiver, str) or len(receiver) != 3 or receiver[2] not in ("q", "k", "v"):
            raise UserError(message)
        heads = config.num_heads if receiver[2] == "q" else config.kv_heads
        if not (0 <= receiver[0] < config.num_layers and 0 <= receiver[1] < heads):
            raise UserError(_("the model has no layer {layer} head {head}", layer=receiver[0], head=receiver[1]))
    if sender is not None and not (0 <= sender[0] < config.num_layers and 0 <= sender[1] < config.num_heads):
        raise UserError(_("the model has no layer {layer} head {head}", layer=sender[0], head=sender[1]))


def patch_component(setups: Sequence[PatchingSetup], component: str) -> JobSteps:
    """Compute every metric after patching each node of a component alone, in each setup.

    Yields how many nodes are done; returns (2, M, L, P) for two; NaN at positions where nothing is patched, and for
    patterns unless the prompts are aligned position by position.
    """
    metrics, done, config = [], 0, setups[0].lm.config
    taps = component_taps(component, config.num_layers)
    for setup in setups:
        if component == "attn.pattern" and setup.partners is not None:
            metrics.append(np.full((len(METRICS), config.num_layers, config.num_heads), np.nan))
            continue
        source_values, measured = setup.source_values(taps), []
        for layer, tap in enumerate(taps):
            measured.append((yield from patch_each_node(setup, layer, tap, source_values[tap], done)))
            done += source_values[tap].shape[1]
        both = np.stack(measured, axis=1)  # (M, L, P)
        metrics.append(setup.to_clean_positions(both) if component in BY_POSITION else both)
    return np.stack(metrics)


def patch_neurons(setups: Sequence[PatchingSetup], layer: int) -> JobSteps:
    """Compute every metric after patching each neuron of a layer, in each setup.

    Yields how many neurons are done; returns (2, M, F) for two.
    """
    metrics, done, tap = [], 0, f"blocks.{layer}.ffn.hidden"
    for setup in setups:
        source_value = setup.source_values([tap])[tap]
        metrics.append((yield from patch_each_node(setup, layer, tap, source_value, done)))
        done += source_value.shape[-1]
    return np.stack(metrics)


def rerun_with_patch(setup: PatchingSetup, intervention: Intervention) -> np.ndarray:
    """Return every metric of an ordinary run with one value patched from the other run, (M,)."""
    source = capture(setup.lm, setup.source_ids)
    partners = tuple(range(len(source))) if setup.partners is None else setup.partners
    patch = replace(intervention, source=align_values(partners, source[intervention.tap], tuple(setup.target_ids)))
    logits = capture(setup.lm, setup.target_ids, [patch])["logits"]
    return setup.measure_all(torch.tensor(logits)[None])[:, 0].numpy()
