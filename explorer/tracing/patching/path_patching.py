"""Path patching: the effect of a head on the prediction along its direct path to a receiver."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor

from explorer.state.errors import UserError
from explorer.tracing.hooks import forward_hooks
from explorer.tracing.jobs import run_to_completion
from explorer.tracing.patching.components import component_taps
from explorer.tracing.patching.experiment import Receiver
from explorer.tracing.patching.patching_setup import METRICS, PatchingSetup
from explorer.tracing.request_budget import check_budget, chunk_tokens
from explorer.translations import _
from model.offloading import read_weight
from model.transformer_lm import TransformerLM


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
    row, num_layers = list(METRICS).index(metric), _num_layers_before(lm, receiver)
    layers = range(num_layers) if sender is None else range(sender[0], min(sender[0] + 1, num_layers))
    heads = torch.arange(lm.config.num_heads) if sender is None else torch.tensor([sender[1]])
    steps = patch_direct_paths(setup, receiver, layers, heads, through_ffn)
    metrics = run_to_completion(steps, lambda done: progress(done / len(layers)))[row]
    effects = setup.normalised_effects(metrics)
    effects[[layer for layer in range(lm.config.num_layers) if layer not in layers]] = 0.0
    if not np.isfinite(setup.normalised_effects(np.zeros(1))).all():
        effects[:] = np.nan
    return effects if sender is None else float(effects[sender[0], 0])


def patch_direct_paths(
    setup: PatchingSetup, receiver: Receiver, layers: Sequence[int], heads: Tensor, through_ffn: bool = False
) -> Generator[int, None, np.ndarray]:
    """Compute every metric after patching the direct path from each of some heads to the receiver, layer by layer.

    Yields how many layers are done; returns (M, L, N), NaN for other layers.
    """
    lm, config = setup.lm, setup.lm.config
    taps = [component_taps(name, config.num_layers) for name in ("attn.z", "attn.out", "ffn.out")]
    target_values = setup.record(setup.target_ids, sum(taps, []))
    source_values = setup.source_values(taps[0])
    metrics = np.full((len(METRICS), config.num_layers, len(heads)), np.nan)
    length = len(setup.target_ids)
    for done, layer in enumerate(layers):
        z = f"blocks.{layer}.attn.z"
        for batch in torch.arange(len(heads)).split(max(1, chunk_tokens(config, 2) // length)):
            check_budget(tokens=2 * len(batch) * length)
            sent = _head_writes(lm, layer, heads[batch], source_values[z] - target_values[z])  # (N, T, D)
            metrics[:, layer, batch.numpy()] = _run_receiver(setup, target_values, layer, sent, receiver, through_ffn)
            yield done + (int(batch[-1]) + 1 == len(heads))
    return metrics


def _num_layers_before(lm: TransformerLM, receiver: Receiver) -> int:
    """Return the number of layers whose heads can reach the receiver."""
    return lm.config.num_layers if receiver == "logits" else receiver[0]


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
        tap, read = lm.taps[f"blocks.{reading_layer}.attn.{name}"], []
        with (
            _freeze_writes(lm, target_values, layer, sent, through_ffn),
            forward_hooks([tap], lambda module, inputs, value: read.append(value)),
        ):
            lm(ids)

        def patch(module, inputs, value: Tensor) -> Tensor:
            value = value.clone()  # (N, H, T, d)
            value[:, head] = read[0][:, head]
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
