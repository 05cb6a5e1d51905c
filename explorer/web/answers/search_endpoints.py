"""Endpoints for the page's search: what it can find besides what the page holds already."""

from collections.abc import Callable
from typing import Any

from explorer.analysis.next_token import find_tokens, token_rank
from explorer.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.selection import MAX_SEARCH_CHARS
from explorer.tracing.run_service import RunService
from explorer.translations import N_, _, translate
from explorer.views import VIEW_BY_NAME
from explorer.web.answers.lesson_endpoints import LessonContents
from explorer.web.middleware.request_types import Index, State
from explorer.web.protocol import element_id

MAX_SENT_TOKENS = 50_000  # of a vocabulary that the browser searches by itself
MAX_MATCHES = 8
# What people call the subject of a view, besides its title and those of its figures.
ALIASES = {
    "overview": (N_("whole model"), N_("architecture"), N_("map of the model")),
    "tokens": (N_("tokenizer"), N_("BPE"), N_("embedding"), N_("unembedding"), N_("vocabulary"), "PCA"),
    "attention": (N_("attention heads"), N_("attention pattern"), N_("self-attention"), "QK", "softmax", "MHA", "GQA"),
    "positions": ("RoPE", N_("rotary position embedding"), N_("position embedding"), "ALiBi"),
    "kv_cache": (N_("key-value cache"), N_("keys and values")),
    "feed_forward": ("MLP", "FFN", N_("neurons"), N_("activation function"), "SwiGLU", "GELU", N_("sparsity")),
    "residual": (N_("skip connection"), N_("norms"), "RMSNorm", "LayerNorm", N_("outlier dimensions")),
    "prediction": (N_("logit lens"), N_("direct logit attribution"), "DLA", N_("attention rollout"), N_("logits")),
    "activations": (N_("hidden states"), N_("captured values"), N_("histogram")),
    "experiments": (N_("ablation"), N_("interventions"), N_("what if")),
    "directions": (N_("steering vector"), N_("activation steering"), N_("concept direction")),
    "compare": (N_("two prompts"), N_("two models"), N_("difference")),
    "patching": (N_("activation patching"), N_("path patching"), N_("attribution patching"), N_("causal tracing")),
    "training": (N_("loss curve"), N_("checkpoints"), N_("training steps")),
    "own_module": (N_("my own module"), N_("diagnosis"), N_("bugs")),
}


class SearchEndpoints:
    """Endpoints for the search; errors are those of `Endpoints`.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
    """

    def __init__(self, runs: RunService, lessons: LessonContents | None):
        self.runs, self.lessons = runs, lessons

    @property
    def functions(self) -> list[Callable]:
        """Server functions for the browser."""
        return [self.search_index, self.find_tokens, self.rank_of_token]

    def search_index(self, state: State) -> dict[str, Any]:
        """Return what can be found in the state's run.

        Returns:
            `layers`, `heads` and `neurons`: numbers of layers, of heads a layer, and of neurons a layer; `vocabulary`:
            text of each token, None for a model with so many that `find_tokens` is to be asked; `checkpoints`: names;
            `lessons`: as in `listed_lessons`; `views`: view -> its `aliases`, and its `figures` as (element id, title)
            pairs.

        Raises:
            UserError, CheckpointError: there is no such run.
        """
        trace = self.runs.trace(PageState.parse(state).run)
        config, vocabulary = trace.config, trace.vocabulary
        return {
            "layers": config.num_layers,
            "heads": config.num_heads,
            "neurons": config.d_ff,
            "vocabulary": list(vocabulary) if len(vocabulary) <= MAX_SENT_TOKENS else None,
            "checkpoints": list(self.runs.library.checkpoints),
            "lessons": self.lessons.list_lessons() if self.lessons else [],
            "views": {
                view.name: {
                    "aliases": [translate(alias) for alias in ALIASES.get(view.name, ())],
                    "figures": [
                        (element_id(view.name, panel.name), translate(panel.title))
                        for panel in view.panels
                        if view.is_applicable(trace) and panel.is_applicable(trace) and not panel.compared_run
                    ],
                }
                for view in VIEW_BY_NAME.values()
            },
        }

    def find_tokens(self, state: State, text: str) -> list[tuple[int, str]]:
        """Return the (id, text) of tokens that match a search text best.

        Args:
            text: part of a token's text, or a token's id.

        Raises:
            UserError, CheckpointError: there is no such model.
        """
        _lm, tokenizer = self.runs.model(PageState.parse(state).run.checkpoint)
        vocabulary = tokenizer.vocabulary
        ranking = sorted(range(len(vocabulary)), key=lambda i: len(vocabulary[i]))
        matches = find_tokens(vocabulary, text[:MAX_SEARCH_CHARS], ranking, MAX_MATCHES)
        return [(i, vocabulary[i]) for i in matches]

    def rank_of_token(self, state: State, token: Index) -> int:
        """Return a token's rank among the next tokens after the selected one, from 1.

        Raises:
            UserError, CheckpointError: there is no such token or run.
        """
        page_state = PageState.parse(state)
        trace = self.runs.trace(page_state.run)
        if token >= len(trace.vocabulary):
            raise UserError(_("There is no token {id}.", id=token))
        return int(token_rank(trace, page_state.selection.clamp_to_trace(trace).query, token))
