"""From what is asked (a run, a selection, settings) to what the page shows; knows nothing of Gradio."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import plotly.graph_objects as go

from explorer.analysis.next_token import next_token, surprisal
from explorer.library import Library
from explorer.run import Run
from explorer.selection import Selection
from explorer.settings import GenerationSettings
from explorer.trace import Trace
from explorer.views import VIEWS
from explorer.views.choices import Choice, choices
from explorer.views.next_token import distribution, summary
from explorer.views.view import Panel, View
from model.config import ModelConfig


@dataclass(frozen=True)
class Question:
    """The page's state: what runs, and what of it is looked at."""

    run: Run
    selection: Selection

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "Question":
        """ValueError where the run makes no sense; of the selection, what makes none is left out."""
        selection = Selection.parse(state)
        return cls(Run.parse(state), replace(selection, view=view_named(selection.view).name))

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict()


@dataclass(frozen=True)
class ViewContent:
    """What an open view shows.

    Attributes:
        words, formula: texts.
        choices: lists to choose from.
        pictures: name of the panel -> draws it; what it draws is None where the view or the panel does not apply to
            the model.
    """

    words: str
    formula: str = ""
    choices: list[Choice] = field(default_factory=list)
    pictures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


class Presenter:
    """Answers questions from the models of a library.

    Every method that takes a run raises CheckpointError where its model cannot be loaded, and ValueError where its
    tokens are none of the model's.
    """

    def __init__(self, library: Library):
        self.library = library

    def run_of(self, checkpoint: str, text: str) -> Run:
        """The run of a prompt; of one longer than the context its last part. ValueError if it is empty."""
        lm, tokenizer = self.library.model(checkpoint)
        if not isinstance(text, str):
            raise ValueError(f"The prompt must be text, got {text!r}.")
        ids = tokenizer.encode(text)
        if not ids:
            raise ValueError("The prompt is empty. Type a few words for the model to continue.")
        kept = ids[-lm.config.context_length :]
        return Run(checkpoint, tuple(kept), dropped=len(ids) - len(kept))

    def restored(self, state: Mapping[str, Any]) -> Question:
        """The question in a URL: its ids, or a prompt given as `text`."""
        question = Question.parse(state)
        if not question.run.prompt:
            question = replace(question, run=self.run_of(question.run.checkpoint, str(state.get("text", ""))))
            if "query" not in state:
                return self.at_end(question)
        return self.within(question)

    def within(self, question: Question) -> Question:
        """The same run, looked at in the same place or in the nearest that exists."""
        return replace(question, selection=question.selection.within(self.trace(question.run)))

    def at_end(self, question: Question) -> Question:
        """The same run, looked at from its last token to the one before; what exists of the rest is kept."""
        last = len(self.trace(question.run)) - 1
        selection = replace(question.selection, query=last, key=max(0, last - 1))
        return self.within(replace(question, selection=selection))

    def trace(self, run: Run) -> Trace:
        """What the model computes on the part of the run that it sees."""
        lm, _ = self.library.model(run.checkpoint)
        return self.library.trace(run.checkpoint, run.window(lm.config.context_length))

    def text(self, run: Run) -> tuple[str, str]:
        """The prompt and the generated text."""
        _, tokenizer = self.library.model(run.checkpoint)
        return tokenizer.decode(run.prompt), tokenizer.decode(run.generated)

    def strip(self, run: Run) -> dict[str, Any]:
        """The tokens the model sees, and how many it does not."""
        trace = self.trace(run)
        unseen = len(run.token_ids) - len(trace)
        return {
            "tokens": trace.tokens,
            "surprisal": surprisal(trace),
            "num_prompt": max(0, len(run.prompt) - unseen),
            "earlier": unseen + run.dropped,
        }

    def view(self, question: Question, newly: bool = True) -> tuple[View, ViewContent]:
        """The open view and what it shows; unless it is `newly` shown, only the pictures that follow the selection."""
        trace = self.trace(question.run)
        view = view_named(question.selection.view)
        if not view.applies_to(trace):
            nothing = {panel.name: lambda: None for panel in view.panels}
            return view, ViewContent(words=view.otherwise(trace.config), pictures=nothing)
        selection = question.selection.within(trace)

        def draw(panel: Panel) -> Any:
            return panel.draw(trace, selection) if panel.applies_to(trace) else None

        return view, ViewContent(
            words=view.words,
            formula=view.formula(trace, selection),
            choices=choices(view.controls, trace, selection),
            pictures={panel.name: partial(draw, panel) for panel in view.panels if newly or not panel.once},
        )

    def next_token(self, question: Question, settings: GenerationSettings) -> tuple[go.Figure, str]:
        """The distribution after the selected token, and it in a sentence."""
        trace = self.trace(question.run)
        position = question.selection.within(trace).query
        prediction = next_token(trace, position, settings.temperature, settings.top_k)
        after = trace.tokens[position]
        picture = distribution(prediction, trace.vocabulary, after)
        return picture, summary(prediction, trace.vocabulary, after, position)

    def facts(self, checkpoint: str) -> str:
        """The model's kind and size, and where it runs, in a line."""
        lm, _ = self.library.model(checkpoint)
        config = lm.config
        size = sum(parameter.numel() for parameter in lm.parameters())
        return (
            f"{kind(config)} · {size / 1e6:.1f} M parameters · {layers_and_heads(config)} · "
            f"context {config.context_length} · {lm.device.type}"
        )


def view_named(name: str) -> View:
    """The view of that name, or else the one that is open at first."""
    views = {view.name: view for view in VIEWS}
    return views.get(name, views[Selection.view])


NAMES = {
    "rmsnorm": "RMSNorm",
    "layernorm": "LayerNorm",
    "rope": "RoPE",
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "none": "no positions",
    "swiglu": "SwiGLU",
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
}


def kind(config: ModelConfig) -> str:
    """What a model is built of, as in "RMSNorm · RoPE · SwiGLU"."""
    norm, position, ffn = (NAMES[choice] for choice in (config.norm, config.position, config.ffn))
    if config.norm_placement == "post":
        norm += " (post-norm)"
    if config.position == "rope" and config.rope_scaling:
        position += f" slowed {config.rope_scaling.factor:g}×"
    parts = [norm, position, ffn]
    if config.qk_norm:
        parts.append("QK-norm")
    if config.bias or config.qkv_bias:
        parts.append("biases" if config.bias else "q, k, v biases")
    return " · ".join(parts)


def layers_and_heads(config: ModelConfig) -> str:
    """As in "6 layers × 6 heads (2 kv)"."""
    layers, heads = config.num_layers, config.num_heads
    shared = f" ({config.kv_heads} kv)" if config.kv_heads < heads else ""
    return f"{layers} layer{'s' * (layers > 1)} × {heads} head{'s' * (heads > 1)}{shared}"
