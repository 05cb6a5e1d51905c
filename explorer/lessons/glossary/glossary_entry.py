"""Glossary entries, and the facts of a run that their examples name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from explorer.analysis.attention import megabytes_stored
from explorer.analysis.direct_logit_attribution import LogitAttribution, direct_logit_attribution
from explorer.analysis.embedding import principal_components, residual_at_depth
from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.analysis.intervention_effects import ablation_effects
from explorer.analysis.logit_lens import lens_inputs, lens_summaries
from explorer.analysis.next_token import (
    NATS_PER_BIT,
    NextTokenDistribution,
    kl_divergence,
    mean_text_loss,
    predict_next_token,
    surprisal,
)
from explorer.analysis.residual import residual_stream
from explorer.analysis.run_difference import head_distances, next_token_probabilities
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.formulas import first_visible_key, layers_without_rope
from explorer.explain.captured import check_captured_value
from explorer.explain.notation import format_number, format_percent, join_names, quote_token, quote_word
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import ResultNotReadyError
from explorer.tracing.trace import Trace
from explorer.translations import _, translate
from model.config import ModelConfig, num_parameters


@dataclass(frozen=True)
class GlossaryExampleContext:
    """The context of an example: a run, the selection, the sampling settings, and the run compared with, if any.

    Attributes:
        start: number of tokens before the trace's first; random numbers are indexed by position in the whole text.
    """

    trace: Trace
    selection: Selection
    settings: GenerationSettings
    comparison: Comparison | None = None
    start: int = 0

    def __getitem__(self, fact: str) -> Any:
        """Return one of `FACTS`; a template that is formatted with the context computes only those that it names."""
        return FACTS[fact](self)

    @property
    def config(self) -> ModelConfig:
        return self.trace.config

    @property
    def token(self) -> str:
        """The selected token's text."""
        return self.trace.tokens[self.selection.query]

    def read_layer(self, name: str) -> np.ndarray:
        """Return a captured value of the selected layer."""
        return self.trace[f"blocks.{self.selection.layer}.{name}"]

    def quote_id(self, token_id: int) -> str:
        return quote_token(self.trace.vocabulary[token_id])

    @cached_property
    def prediction(self) -> NextTokenDistribution:
        """The prediction after the selected token, with the page's settings."""
        return predict_next_token(self.trace, self.selection.query, self.settings, self.start)

    @cached_property
    def best_ids(self) -> list[int]:
        """The two likeliest next tokens."""
        return self.prediction.top(2).tolist()

    @cached_property
    def stream_lengths(self) -> np.ndarray:
        """Norms of the selected token's residual stream, (S,)."""
        return np.linalg.norm(residual_stream(self.trace)[:, self.selection.query], axis=-1)

    @cached_property
    def last_vector(self) -> np.ndarray:
        """The last layer's output at the selected token, (D,) in float64."""
        last = self.config.num_layers - 1
        return self.trace[f"blocks.{last}.resid_post"][self.selection.query].astype(np.float64)

    @property
    def gains(self) -> np.ndarray:
        """Gains of the norm before the selected layer's attention, (D,)."""
        return self.trace.weights[f"blocks.{self.selection.layer}.attn_norm.weight"]

    @cached_property
    def attention(self) -> np.ndarray:
        """The selected head's attention from the selected token, (T,)."""
        return self.read_layer("attn.pattern")[self.selection.head, self.selection.query]

    @cached_property
    def rollout(self) -> np.ndarray:
        return attention_rollout(self.trace, self.selection.query)

    @cached_property
    def head_score(self) -> float:
        """The selected head's score on the page's head map; NaN if no query counts."""
        scores = head_scores(self.trace, self.selection.option("head_score"), self.selection.first_token == "hidden")
        return scores[self.selection.layer, self.selection.head]

    @cached_property
    def induction(self) -> np.ndarray:
        """Induction scores, (L, H); NaN if no token repeats."""
        return head_scores(self.trace, "induction")

    @cached_property
    def components(self) -> np.ndarray:
        """Shares of variance of the principal components at the selected depth."""
        return principal_components(residual_at_depth(self.trace, self.selection.residual_depth)).shares

    @cached_property
    def guesses(self) -> np.ndarray:
        """The likeliest token at each depth of the logit lens, (S,)."""
        query = self.selection.query
        return lens_summaries(self.trace, range(query, query + 1)).top[:, 0, 0]

    @cached_property
    def attribution(self) -> LogitAttribution:
        """Attribution of the likeliest next token's logit."""
        return direct_logit_attribution(self.trace, self.selection.query, self.best_ids[0])

    @property
    def linear_maps(self) -> dict[str, bool]:
        """The model's linear maps, and whether they have a bias."""
        config = self.config
        return {"q, k, v": config.has_qkv_bias, "W_O": config.bias, _("the feed-forward"): config.has_ffn_bias}

    @property
    def caps(self) -> dict[str, float]:
        """The values that the model caps, and their limits."""
        caps = {_("scores"): self.config.score_cap, _("logits"): self.config.logit_cap}
        return {name: cap for name, cap in caps.items() if cap}

    def logged_value(self, name: str) -> tuple[float, int] | None:
        """Return the value that training logged at the checkpoint's step, or else the last one, and its step."""
        training = self.trace.training
        if not training or name not in training.record:
            return None
        steps, values = training.record["step"], training.record[name]
        is_logged = np.isfinite(values)
        now = is_logged & (steps == training.step)
        rows = np.flatnonzero(now if now.any() else is_logged)
        return (values[rows[-1]], int(steps[rows[-1]])) if len(rows) else None

    @cached_property
    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Both runs' probabilities of the next token, (V,) each."""
        return next_token_probabilities(self.comparison, self.selection.query)

    @cached_property
    def partners(self) -> list[str | None]:
        """The token of B beside each token of A, or None."""
        tokens = self.comparison.other.tokens
        return [None if index is None else tokens[index] for index in self.comparison.alignment.partners]


def token_num_bytes(trace: Trace, position: int) -> int:
    """Return the number of bytes of a token, also where it is a part of a character."""
    token_bytes = trace.token_bytes[trace.token_ids[position]] if trace.token_bytes else None
    return len(trace.tokens[position].encode() if token_bytes is None else token_bytes)


def count_tokens_with_prefix(trace: Trace, prefix: str) -> int:
    """Count the run's tokens that begin with a prefix."""
    return sum(text.startswith(prefix) for text in trace.tokens)


def cosine_of_ends(trace: Trace, query: int) -> float:
    """Return the cosine of what the unembedding would read before the first layer and what it reads after the last."""
    read = lens_inputs(trace, slice(query, query + 1))[:, 0].astype(float)
    first, last = (x / np.linalg.norm(x) for x in (read[0], read[-1]))
    return float(first @ last)


NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
ACTIVATIONS = {"swiglu": "SwiGLU", "geglu": "GeGLU", "relu": "ReLU", "relu2": "ReLU²"}

FACTS: dict[str, Callable[[GlossaryExampleContext], Any]] = {
    # the selection and the text
    "layer": lambda c: c.selection.layer,
    "head": lambda c: c.selection.head,
    "neuron": lambda c: c.selection.neuron,
    "depth": lambda c: c.selection.residual_depth,
    "position": lambda c: c.selection.query,
    "tap": lambda c: c.selection.tap,
    "tap_size": lambda c: c.trace[c.selection.tap].size,
    "token": lambda c: quote_token(c.token),
    "word": lambda c: quote_word(c.token),
    "key": lambda c: quote_token(c.trace.tokens[c.selection.key]),
    "tokens": lambda c: len(c.trace),
    "later": lambda c: len(c.trace) - 1 - c.selection.query,
    "spaces": lambda c: count_tokens_with_prefix(c.trace, " "),
    "line_breaks": lambda c: count_tokens_with_prefix(c.trace, "\n"),
    "token_bytes": lambda c: token_num_bytes(c.trace, c.selection.query),
    "merges": lambda c: c["token_bytes"] - 1,
    "text_bytes": lambda c: sum(token_num_bytes(c.trace, position) for position in range(len(c.trace))),
    # the model
    "layers": lambda c: c.config.num_layers,
    "sublayers": lambda c: 2 * c.config.num_layers,
    "heads": lambda c: c.config.num_heads,
    "d_model": lambda c: c.config.d_model,
    "d_head": lambda c: c.config.d_head,
    "heads_width": lambda c: c.config.num_heads * c.config.d_head,
    "d_ff": lambda c: c.config.d_ff,
    "vocab_size": lambda c: c.config.vocab_size,
    "context_length": lambda c: c.config.context_length,
    "parameters": lambda c: num_parameters(c.config),
    "norm": lambda c: NORMS[c.config.norm],
    "activation": lambda c: ACTIVATIONS.get(c.config.ffn, "GELU"),
    "maps": lambda c: ", ".join(name for name, has_bias in c.linear_maps.items() if has_bias),
    "caps": lambda c: join_names(_("{what} (c = {cap:g})", what=what, cap=cap) for what, cap in c.caps.items()),
    "pairs": lambda c: c.config.num_rotary_dims // 2,
    "theta": lambda c: c.config.rope_theta,
    "local_theta": lambda c: c.config.local_rope_theta,
    "unrotated_layers": lambda c: join_names(map(str, layers_without_rope(c.config))),
    "cache_size": lambda c: format_number(float(megabytes_stored(c.config, len(c.trace)))),
    # vectors of the selected token
    "embedding_length": lambda c: format_number(np.linalg.norm(c.trace["embed"][c.selection.query])),
    "first_length": lambda c: format_number(c.stream_lengths[0]),
    "last_length": lambda c: format_number(c.stream_lengths[-1]),
    "final_norm_input": lambda c: format_number(np.linalg.norm(c.last_vector)),
    "mean": lambda c: format_number(c.last_vector.mean()),
    "median": lambda c: format_number(np.median(c.last_vector)),
    "variance": lambda c: format_number(c.last_vector.var()),
    "std": lambda c: format_number(c.last_vector.std()),
    "rms": lambda c: format_number(np.sqrt((c.last_vector**2).mean())),
    "cosine": lambda c: format_number(cosine_of_ends(c.trace, c.selection.query)),
    "first_component": lambda c: format_number(c.components[0]),
    "second_component": lambda c: format_number(c.components[1]),
    # inside the selected layer and head
    "hidden_value": lambda c: format_number(c.read_layer("ffn.hidden")[c.selection.query, c.selection.neuron]),
    "gate": lambda c: format_number(c.read_layer("ffn.gate")[c.selection.query, c.selection.neuron]),
    "hidden_values": lambda c: c.read_layer("ffn.hidden").size,
    "zeros": lambda c: int((c.read_layer("ffn.hidden") == 0).sum()),
    "least_gain": lambda c: format_number(c.gains.min()),
    "largest_gain": lambda c: format_number(c.gains.max()),
    "top_key": lambda c: quote_token(c.trace.tokens[c.attention.argmax()]),
    "top_attention": lambda c: format_percent(float(c.attention.max())),
    "keys": lambda c: c.selection.query + 1 - first_visible_key(c.config, c.selection.layer, c.selection.query),
    "score": lambda c: format_number(c.read_layer("attn.scores")[c.selection.head, c.selection.query, c.selection.key]),
    "value_length": lambda c: format_number(
        np.linalg.norm(c.trace.head_value(f"blocks.{c.selection.layer}.attn.v", c.selection.head)[c.selection.key])
    ),
    "head_score": lambda c: format_number(c.head_score),
    "does": lambda c: translate(HEAD_SCORES[c.selection.option("head_score")].description),
    "induction_layer": lambda c: np.nanargmax(c.induction) // c.config.num_heads,
    "induction_head": lambda c: np.nanargmax(c.induction) % c.config.num_heads,
    "induction_score": lambda c: format_number(np.nanmax(c.induction)),
    "rollout_share": lambda c: format_number(c.rollout.max()),
    "origin": lambda c: quote_token(c.trace.tokens[c.rollout.argmax()]),
    "pattern": lambda c: f"blocks.{c.selection.layer}.attn.pattern",
    "error": lambda c: format_number(check_captured_value(c.trace, c["pattern"]).error),
    # the prediction and the settings
    "best": lambda c: c.quote_id(c.best_ids[0]),
    "best_word": lambda c: quote_word(c.trace.vocabulary[c.best_ids[0]]),
    "second_best": lambda c: c.quote_id(c.best_ids[1]),
    "logit": lambda c: format_number(c.trace.logits.token_logits(c.best_ids[0], c.selection.query)),
    "lead": lambda c: format_number(np.subtract(*c.trace.logits.row(c.selection.query)[c.best_ids])),
    "probability": lambda c: format_number(c.prediction.plain[c.best_ids[0]]),
    "probability_percent": lambda c: format_percent(float(c.prediction.plain[c.best_ids[0]])),
    "log_probability": lambda c: format_number(np.log2(c.prediction.plain[c.best_ids[0]])),
    "chance": lambda c: format_number(c.prediction.sampled[c.best_ids[0]]),
    "chance_percent": lambda c: format_percent(float(c.prediction.sampled[c.best_ids[0]])),
    "plain_entropy": lambda c: format_number(c.prediction.plain_entropy),
    "entropy": lambda c: format_number(c.prediction.entropy),
    "uniform_bits": lambda c: format_number(np.log2(c.config.vocab_size)),
    "candidates": lambda c: int((c.prediction.sampled > 0).sum()),
    "temperature": lambda c: c.settings.temperature,
    "seed": lambda c: c.settings.seed,
    "u": lambda c: format_number(c.prediction.u),
    "next_word": lambda c: quote_word(c.trace.vocabulary[c.prediction.sampled_token_id]),
    "next": lambda c: c.quote_id(c.prediction.actual),
    "rank": lambda c: c.prediction.rank(c.prediction.actual),
    "surprisal": lambda c: format_number(surprisal(c.trace)[c.selection.query]),
    "perplexity": lambda c: format_number(2 ** float(surprisal(c.trace)[1:].mean())),
    "nats": lambda c: format_number(mean_text_loss(c.trace)),
    "bits": lambda c: format_number(mean_text_loss(c.trace) / NATS_PER_BIT),
    # methods of interpretation
    "first_guess": lambda c: c.quote_id(c.guesses[0]),
    "last_guess": lambda c: c.quote_id(c.guesses[-1]),
    "heads_add": lambda c: format_number(c.attribution.heads.sum() + c.attribution.biases.sum()),
    "feed_forwards_add": lambda c: format_number(c.attribution.feed_forward.sum()),
    "ablation_effect": lambda c: format_number(
        ablation_effects(c.trace, c.selection.query, c.best_ids[0]).heads[c.selection.layer, c.selection.head]
    ),
    "gradients": lambda c: (c.selection.query + 1) * c.config.d_model,
    # training
    "step": lambda c: c.trace.training.step,
    "validation_loss": lambda c: format_number(c.logged_value("validation_loss")[0]),
    "validation_step": lambda c: c.logged_value("validation_loss")[1],
    "learning_rate": lambda c: format_number(c.logged_value("learning_rate")[0]),
    "learning_rate_step": lambda c: c.logged_value("learning_rate")[1],
    # a comparison
    "probability_a": lambda c: format_number(c.probabilities[0][c.best_ids[0]]),
    "probability_b": lambda c: format_number(c.probabilities[1][c.best_ids[0]]),
    "probability_difference": lambda c: format_number(np.subtract(*c.probabilities)[c.best_ids[0]]),
    "there": lambda c: format_number(kl_divergence(*c.probabilities)),
    "back": lambda c: format_number(kl_divergence(*reversed(c.probabilities))),
    "aligned": lambda c: len(c.partners) - c.partners.count(None),
    "kept": lambda c: sum(partner == token for partner, token in zip(c.partners, c.trace.tokens, strict=True)),
    "replaced": lambda c: c["aligned"] - c["kept"],
    "deleted": lambda c: c.partners.count(None),
    "inserted": lambda c: c.comparison.alignment.inverse.count(None),
    "unlike_b": lambda c: len(c.partners) - c["kept"],
    "partner": lambda c: (
        _("nothing") if c.partners[c.selection.query] is None else quote_token(c.partners[c.selection.query])
    ),
    "clean": lambda c: "B" if c.selection.option("clean_run") == "b" else "A",
    "corrupted": lambda c: "A" if c.selection.option("clean_run") == "b" else "B",
    "distance": lambda c: format_number(np.nanmax(head_distances(c.comparison))),
    "distant_layer": lambda c: np.nanargmax(head_distances(c.comparison)) // c.config.num_heads,
    "distant_head": lambda c: np.nanargmax(head_distances(c.comparison)) % c.config.num_heads,
}


@dataclass(frozen=True)
class GlossaryEntry:
    """A term and its definition, both translated when displayed.

    Attributes:
        forms: as the page writes it; the first is in docs/glossary.md.
        meaning: a sentence without its full stop.
        example: a sentence whose names are `FACTS`, or a function that chooses one for a run.
    """

    forms: tuple[str, ...]
    meaning: str
    example: str | Callable[[GlossaryExampleContext], str]

    @property
    def name(self) -> str:
        return self.forms[0]

    def format_example(self, context: GlossaryExampleContext) -> str:
        """Return a sentence with the run's numbers."""
        template = self.example if isinstance(self.example, str) else self.example(context)
        return translate(template).format_map(context)

    def define(self, context: GlossaryExampleContext) -> str:
        """Return the term's meaning with an example from the run; without it if a result is not computed yet."""
        try:
            example = self.format_example(context)
        except ResultNotReadyError:  # its figure has the button
            example = ""
        return _("{meaning}. {here}", meaning=translate(self.meaning), here=example).rstrip()
