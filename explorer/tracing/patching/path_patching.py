"""Path patching: what one head does to a prediction by what another reads of it directly."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.hooks import hooked
from explorer.tracing.jobs import finished
from explorer.tracing.patching.contrast import METRICS, Contrast
from explorer.tracing.patching.parts import taps_of
from explorer.tracing.patching_question import Receiver
from explorer.tracing.work import go_on, tokens_at_once
from model.offloading import weight_of
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
    """The effect of a sending head on the prediction along its direct path to a receiver (Wang et al. 2022,
    arXiv:2211.00593, §3.1 and appendix B).

    First the recipient is run with the sender's z from the donor, while what every other head and every feed-forward
    writes stays as the recipient has it: frozen. The residual stream then differs by what the sender writes, every norm
    on its way is computed anew, and the receiver reads it. Then the recipient is run with the receiver's q, k or v as
    read then, at all positions, and nothing frozen.

    Args:
        receiver: "logits", or (layer, head, "q", "k" or "v"), where the head of shared keys and values is one of those.
        sender: (layer, head); None for all of them.
        through_ffn: whether the feed-forwards between the two are computed anew instead of frozen, as Wang et al. do.
        progress: is told the share that is done; what it raises ends the work.

    The other arguments are those of `activation_patching`, and so is the scale.

    Returns:
        (L, H) float64 for all senders, 0 where the sender comes after the receiver; of one sender a float.

    Raises:
        UserError: the prompts are not equally long, or anything named is not there.
    """
    contrast = Contrast(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    _check(lm, receiver, sender)
    row, before = list(METRICS).index(metric), _before(lm, receiver)
    layers = range(before) if sender is None else range(sender[0], min(sender[0] + 1, before))
    heads = torch.arange(lm.config.num_heads) if sender is None else torch.tensor([sender[1]])
    pieces = sent_by(contrast, receiver, layers, heads, through_ffn)
    measured = finished(pieces, lambda done: progress(done / len(layers)))[row]
    effects = contrast.effects(measured)
    effects[[layer for layer in range(lm.config.num_layers) if layer not in layers]] = 0.0
    if not np.isfinite(contrast.effects(np.zeros(1))).all():
        effects[:] = np.nan
    return effects if sender is None else float(effects[sender[0], 0])


def sent_by(
    contrast: Contrast, receiver: Receiver, layers: Sequence[int], heads: Tensor, through_ffn: bool = False
) -> Generator[int, None, np.ndarray]:
    """Every metric once the receiver has read what each of some heads sends, a layer after another: how many layers are
    done; returns (M, L, N), NaN for other layers."""
    lm, config = contrast.lm, contrast.lm.config
    taps = [taps_of(name, config.num_layers) for name in ("attn.z", "attn.out", "ffn.out")]
    own = contrast.recorded(contrast.recipient_ids, sum(taps, []))
    donated = contrast.donated(taps[0])
    measured = np.full((len(METRICS), config.num_layers, len(heads)), np.nan)
    length = len(contrast.recipient_ids)
    for done, layer in enumerate(layers):
        z = f"blocks.{layer}.attn.z"
        for some in torch.arange(len(heads)).split(max(1, tokens_at_once(config, 2) // length)):
            go_on(tokens=2 * len(some) * length)
            sent = _written(lm, layer, heads[some], donated[z] - own[z])  # (N, T, D)
            measured[:, layer, some.numpy()] = _received(contrast, own, layer, sent, receiver, through_ffn)
            yield done + (int(some[-1]) + 1 == len(heads))
    return measured


def _before(lm: TransformerLM, receiver: Receiver) -> int:
    """How many layers reach the receiver."""
    return lm.config.num_layers if receiver == "logits" else receiver[0]


def _written(lm: TransformerLM, layer: int, heads: Tensor, z: Tensor) -> Tensor:
    """What each of some heads alone writes to the stream, without the bias: z (1, H, T, d) -> (N, T, D)."""
    weight = weight_of(lm, f"blocks.{layer}.attn.o_proj.weight").to(z.device)
    weight = weight.unflatten(1, (lm.config.num_heads, -1))  # (D, H, d)
    return torch.einsum("nti,oni->nto", z[0, heads], weight[:, heads])


def _received(
    contrast: Contrast, own: dict[str, Tensor], layer: int, sent: Tensor, receiver: Receiver, through_ffn: bool
) -> np.ndarray:
    """Every metric, (M, N), once the receiver alone has read what was sent, (N, T, D), from a layer."""
    lm, ids = contrast.lm, contrast.batch(contrast.recipient_ids)
    with torch.inference_mode():
        if receiver == "logits":
            with _frozen(lm, own, layer, sent, through_ffn):
                return contrast.measure_all(lm(ids, last_only=True)).numpy()
        reading_layer, head, name = receiver
        tap, read = lm.taps[f"blocks.{reading_layer}.attn.{name}"], []
        with (
            _frozen(lm, own, layer, sent, through_ffn),
            hooked([tap], lambda module, inputs, value: read.append(value)),
        ):
            lm(ids)

        def put(module, inputs, value: Tensor) -> Tensor:
            value = value.clone()  # (N, H, T, d)
            value[:, head] = read[0][:, head]
            return value

        with _spread(lm, reading_layer, len(sent)), hooked([tap], put):
            return contrast.measure_all(lm(ids, last_only=True)).numpy()


@contextmanager
def _frozen(lm: TransformerLM, own: dict[str, Tensor], layer: int, sent: Tensor, through_ffn: bool) -> Iterator[None]:
    """From a layer on nothing but what is sent reaches the stream anew: all writes are the recipient's own."""

    def writes(value: Tensor) -> Callable:
        return lambda module, inputs, output: value.expand_as(output)

    with ExitStack() as stack:
        stack.enter_context(_spread(lm, layer, len(sent)))
        for later in range(layer, lm.config.num_layers):
            attention, ffn = f"blocks.{later}.attn.out", f"blocks.{later}.ffn.out"
            stack.enter_context(hooked([lm.taps[attention]], writes(own[attention] + (sent if later == layer else 0))))
            if not through_ffn:
                stack.enter_context(hooked([lm.taps[ffn]], writes(own[ffn])))
        yield


def _spread(lm: TransformerLM, layer: int, runs: int):
    """From a layer on a pass is a batch of that many."""
    return hooked([lm.blocks[layer].resid_pre], lambda module, inputs, x: x.expand(runs, -1, -1))


def _check(lm: TransformerLM, receiver: Receiver, sender: tuple[int, int] | None):
    config = lm.config
    if receiver != "logits":
        wanted = _('wanted "logits", or a layer, a head and "q", "k" or "v", got {got!r}', got=receiver)
        if isinstance(receiver, str) or len(receiver) != 3 or receiver[2] not in ("q", "k", "v"):
            raise UserError(wanted)
        heads = config.num_heads if receiver[2] == "q" else config.kv_heads
        if not (0 <= receiver[0] < config.num_layers and 0 <= receiver[1] < heads):
            raise UserError(_("the model has no layer {layer} head {head}", layer=receiver[0], head=receiver[1]))
    if sender is not None and not (0 <= sender[0] < config.num_layers and 0 <= sender[1] < config.num_heads):
        raise UserError(_("the model has no layer {layer} head {head}", layer=sender[0], head=sender[1]))
