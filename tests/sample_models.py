"""One small model of each kind that the explorer supports, and their captured runs: shared, not to be changed."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from explorer.errors import UserError
from explorer.interventions import Intervention, parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.model_registry import ModelFacts, register_model_facts
from explorer.tracing.numpy_arrays import StoredWeights
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import TrainingHistory
from model.config import ModelConfig, RopeScaling
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

SENTENCES = [
    "Once upon a time there was a fox who wanted the moon.",
    "The fox asked the owl, and the owl asked the moon, and the moon said nothing.",
    "“Wait,” said the owl, “until the lake is still: then the moon comes down to you.”",
]
TEXT = "Once upon a time there was <b>a fox</b> &amp; the moon.\n\tשלום 🌙 é"  # all kinds of characters

DATA = Path(__file__).parent / "data"
STORIES = DATA / "stories260K" / "stories260K.bin"  # a pretrained model of another project

TIED = {"tie_embeddings": True, "scale_embeddings": True}
LINEAR_SCALING = {"rope_scaling": RopeScaling(kind="linear", factor=4)}
YARN = RopeScaling(kind="yarn", factor=4, high_frequency_factor=8, original_context_length=64, attention_factor=1.2)
# Tests of every kind of model run once for each of these; a new kind is a new line.
STYLES = {
    "rope": {},
    "none": {"position": "none", "ffn": "relu2"},
    "gpt": {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True},
    "learned": {"position": "learned", "ffn": "gelu_tanh", "qkv_bias": True} | TIED,
    "grouped": {"d_model": 48, "num_heads": 6, "num_kv_heads": 3, "qk_norm": True, "rope_layout": "half_split"}
    | {"embedding_multiplier": 3.0, "rotary_layers": (False, True)}
    | LINEAR_SCALING,
    "parallel": {"norm": "layernorm", "norm_placement": "parallel", "ffn": "gelu", "bias": True}
    | {"rotary_dim": 4, "rope_layout": "half_split", "rope_scaling": YARN},
    "local": {"position": "learned", "norm": "layernorm", "ffn": "gelu_tanh", "bias": True, "unbiased_qkv": True}
    | {"score_divisor": 1.0, "windows": (None, 8), "norm_placement": "shared", "unembedding_bias": True},
    "post": {"norm": "layernorm", "norm_placement": "post", "ffn": "gelu"},
    "output": {"d_model": 48, "num_heads": 6, "num_kv_heads": 3, "qk_norm": True, "qk_norm_over": "all"}
    | {"norm": "layernorm", "norm_placement": "output", "bias": True},
    "sandwich": {"norm_placement": "sandwich", "ffn": "geglu", "windows": (None, 8), "score_divisor": 2.0}
    | {"score_cap": 1.5, "logit_cap": 2.0, "local_rope_theta": 50.0},
}
CORE = ("rope", "gpt")  # the styles of the bundled checkpoints
ROTATING = [style for style, choices in STYLES.items() if choices.get("position", "rope") == "rope"]
# Interventions that each model's kind of positions allows, at any length; a head is ablated in all of them.
POSITION_INTERVENTIONS = {
    "rope": "rope.angles*shift*3~rope.angles*base*500",
    "sinusoidal": "position_embed*shift*3",
    "learned": "position_embed*scale*0.5",
    "none": "embed*scale*2",
}


# Interventions along the stream that any model allows, on whole values and on one dimension.
STREAM_INTERVENTIONS = "~".join(
    (
        "embed.1*scale*2",
        "blocks.0.attn_norm*scale*2",
        "blocks.0.resid_mid.2*scale*3",
        "blocks.0.ffn.out*scale*-1",
        "blocks.0.resid_post.4*zero",
        "blocks.1.resid_pre*scale*0.5",
        "blocks.1.attn.out.5*scale*4",
        "blocks.1.attn_norm.6*scale*3",
        "blocks.1.ffn_norm.3*scale*-1.5",
        "final_norm*scale*0.5",
        "logits*scale*1.5",
        "logits.17*scale*2",
    )
)

# Interventions of every kind that any model allows, along the stream and inside its sublayers.
ALL_KINDS_INTERVENTIONS = "~".join(
    (
        "embed@2-*add*unembed.17-3*0.4",
        "blocks.0.attn_norm*norm*none",
        "blocks.0.attn.k.0@4*mean",
        "blocks.0.attn.pattern.1@3-7*mask*2",
        "blocks.0.attn.pattern.1@1-*mask*0",
        "blocks.*.attn.pattern@9*drop*4",
        "blocks.0.attn.z.2*mean",
        "blocks.0.attn.out@9*add*ov.1.2.0*2",
        "blocks.0.resid_mid@6.9-*remove*neuron.1.7",
        "blocks.0.ffn.hidden.5@3-*clamp*0.7",
        "blocks.0.ffn.out.3*mean",
        "blocks.1.ffn_norm@4-9.11-*norm*{other}",
        "blocks.1.resid_pre@9*add*neuron.0.11*-0.3",
        "blocks.1.resid_mid.4@5-9*mean",
        "blocks.1.resid_post@1-9*add*unembed.17*0.8",
        "final_norm.6@9*scale*2",
    )
)


@cache
def tokenizer() -> Tokenizer:
    """Return a tokenizer of the 256 bytes, 43 merges learnt from `SENTENCES`, and the end-of-text token."""
    return Tokenizer.load(DATA / "tiny.tiktoken")


def config() -> ModelConfig:
    """Return a config whose sizes all differ, so that no two axes can be confused."""
    return ModelConfig.llama_style(
        vocab_size=tokenizer().vocab_size, context_length=32, d_model=24, num_layers=2, num_heads=3, d_ff=40
    )


@cache
def models() -> dict[str, TransformerLM]:
    """Return a model of each style."""
    lms = {}
    for style, choices in STYLES.items():
        torch.manual_seed(sum(style.encode()))
        lms[style] = lm = TransformerLM(replace(config(), **choices)).eval()
        for parameter in lm.parameters():
            if parameter.ndim == 1:  # gains that are 1 and biases that are 0 would hide their absence
                torch.nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.2)
    for style, history in TRAINING_HISTORIES.items():
        set_training_history(lms[style], history, partial(_capture_at_step, lms[style].config))
    return {style: lm.requires_grad_(False) for style, lm in lms.items()}


def set_training_history(
    lm: TransformerLM, training: TrainingHistory, capture_step: Callable[..., tuple[TransformerLM, Trace]]
):
    """Attach a training history to a model's traces; `capture_step` is the callback that runs it at another step."""
    register_model_facts(lm, lambda lm: ModelFacts(StoredWeights(lm), training, read=capture_step))


STEPS = (0, 8, 64)
RECORD = {"step": [4, 16, 64], "train_loss": [5.5, np.nan, 4.1], "validation_loss": [5.2, 4.6, 4.3]}
SCORES = {
    "bits_per_byte": [2.1, 1.8, 1.7],
    "learning_rate": [3e-3, 2e-3, 1e-4],
    "previous_token_score": [0.1, 0.2, 0.7],
    "induction_score": [0.0, 0.1, 0.6],
}


def training_history(checkpoint: str, steps: Iterable[int] = STEPS, **record: list[float]) -> TrainingHistory:
    """Return a model's history, with checkpoints at `steps` if its name contains a step."""
    model, slash, _step = checkpoint.partition("/")
    checkpoints = {step: f"{model}/step-{step:06d}" for step in steps} if slash else {}
    return TrainingHistory(checkpoint, checkpoints, {name: np.array(values, float) for name, values in record.items()})


# Styles with a training history: checkpoints with or without a record of losses, or a record alone.
TRAINING_HISTORIES = {
    "rope": training_history("rope/step-000008", **RECORD, **SCORES),
    "gpt": training_history("gpt/step-000064", **RECORD, **SCORES),
    "none": training_history("none/step-000000"),
    "learned": training_history("learned", **RECORD),
}


@cache
def _model_at_step(config: ModelConfig, checkpoint: str) -> TransformerLM:
    torch.manual_seed(sum(checkpoint.encode()))
    lm = TransformerLM(config).eval().requires_grad_(False)
    set_training_history(lm, training_history(checkpoint), partial(_capture_at_step, config))
    return lm


@cache
def _capture_at_step(
    config: ModelConfig, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...]
) -> tuple[TransformerLM, Trace]:
    """Return the model at another step of its training, and its trace."""
    lm = _model_at_step(config, checkpoint)
    return lm, capture(lm, token_ids, edits, tokenizer=tokenizer())


@cache
def capture_style(style: str, length: int = 12) -> Trace:
    """Return the run of a style's model over the first tokens of `TEXT`."""
    return capture(models()[style], tokenizer().encode(TEXT)[:length], tokenizer=tokenizer())


@cache
def capture_edited_style(style: str, length: int = 12) -> Trace:
    """Return the run of `capture_style` with interventions on positions and a head; `baseline` is without."""
    position = models()[style].config.position
    return _capture_edited(style, length, f"{POSITION_INTERVENTIONS[position]}~blocks.1.attn.z.1*zero")


@cache
def capture_stream_edited_style(style: str, length: int = 12) -> Trace:
    """Return the run of `capture_style` with interventions along the stream; `baseline` is without."""
    return _capture_edited(style, length, STREAM_INTERVENTIONS)


@cache
def capture_all_kinds_edited_style(style: str, length: int = 12) -> Trace:
    """Return the run of `capture_style` with interventions of every kind; `baseline` is without."""
    other = "rmsnorm" if models()[style].config.norm == "layernorm" else "layernorm"
    return _capture_edited(style, length, ALL_KINDS_INTERVENTIONS.format(other=other))


def applicable_interventions(lm: TransformerLM, text: str) -> list[Intervention]:
    """Return the interventions whose taps the model has: some kinds of blocks have fewer."""

    def is_applicable(intervention: Intervention) -> bool:
        with suppress(UserError):
            intervention.check(lm.config, lm.taps)
            return True
        return False

    return list(filter(is_applicable, parse_interventions(text)))


def _capture_edited(style: str, length: int, interventions: str) -> Trace:
    baseline = capture_style(style, length)
    edited = capture(
        models()[style],
        baseline.token_ids,
        applicable_interventions(models()[style], interventions),
        tokenizer=tokenizer(),
    )
    return replace(edited, baseline=baseline)
