"""A loaded model in Python: its runs, generated text, patching, and the page at one of its runs."""

import atexit
import html
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch

from explorer.diagnosis.command_line import choose_tokenizer
from explorer.errors import UserError
from explorer.interventions import SEPARATOR, CrossRunIntervention, Intervention, parse_interventions
from explorer.run_figures import RunComparison, draw_figure, figure_names, find_view, run_html, select_with_defaults
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.forward_hooks import generate_with_interventions
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.model_registry import register_model_facts
from explorer.tracing.patching import activation_patching
from explorer.tracing.token_ids import encode_messages, encode_prompt
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from model import Tokenizer, TransformerLM, generate, save_checkpoint
from model.checkpoint import is_checkpoint
from model.generation.autoregressive import truncate_at_stop
from model.pretrained.chat_template import end_of_turn_ids
from model.tokenizer import Message

BUNDLED = "llama-fables"
DEFAULTS = GenerationSettings()
Interventions = str | Intervention | Sequence[str | Intervention]


@cache
def shared_library(device: str, dtype: str | None) -> ModelLibrary:
    """Return the models and runs that all loaded models of this process share with their pages."""
    return ModelLibrary(device, dtype=dtype)


def load(
    model: str | Path | TransformerLM,
    tokenizer: Tokenizer | None = None,
    *,
    device: str = "auto",
    dtype: str | None = None,
) -> "Model":
    """Load a model: `explorer.load("llama-fables")`.

    Args:
        model: a name in `checkpoints/`, such as "llama-fables"; a path to a folder of Hugging Face's transformers, a
            file in it or a model of llama2.c; "owner/name" on the Hugging Face Hub, which is downloaded once; or a
            `TransformerLM`, such as `from_module` returns.
        tokenizer: of a `TransformerLM`; None: that of a local checkpoint with as many tokens, or else bytes.
        device: "auto", "cpu", "cuda" or "mps".
        dtype: of the computation of a model of others, such as "float32"; None: as its weights are stored.

    Raises:
        CheckpointError: there is no such model, or it cannot be loaded.
    """
    library = shared_library(device, dtype)
    if isinstance(model, TransformerLM):
        return Model(model, tokenizer or choose_tokenizer(model.config, BUNDLED), library)
    if isinstance(model, torch.nn.Module):
        raise UserError("load takes a TransformerLM: make one of your module with explorer.from_module")
    name = library.catalog.resolve(str(model))
    if not is_checkpoint(name):
        name = library.catalog.open(model)
    return Model(*library.model(name), library, name)


class Model:
    """A model and its tokenizer; made by `explorer.load`.

    Attributes:
        lm: the `TransformerLM`.
        tokenizer: its tokenizer.
        library: holds the runs that were computed.
        name: of its checkpoint; "" if it has none.
    """

    def __init__(self, lm: TransformerLM, tokenizer: Tokenizer, library: ModelLibrary, name: str = ""):
        self.lm, self.tokenizer, self.library, self.name = lm, tokenizer, library, name
        if not name:
            register_model_facts(lm)

    def __repr__(self) -> str:
        config = self.lm.config
        sizes = f"{config.num_layers} layers, {config.num_heads} heads, d_model {config.d_model}"
        return f"<Model {self.name or type(self.lm).__name__}: {sizes}, {config.vocab_size:,} tokens>"

    def run(
        self,
        text: str | Sequence[int] | None = None,
        interventions: Interventions = (),
        *,
        messages: Sequence[Message] | None = None,
    ) -> "ModelRun":
        """Run the model once and return every value: `run["blocks.3.attn.pattern"]` is (heads, queries, keys).

        A run that was computed before, by Python or by the page, is not computed again.

        Args:
            text: a prompt, of which the last part is read if it is too long; or token ids.
            interventions: changes of the run, as text such as "blocks.4.attn.z[4]*zero", or from
                `make_intervention`. With some, `run.baseline` is the run without them.
            messages: in place of `text`, for a chat model: {"role": "user", "content": "Hello"}, …, as its template
                writes them.

        Raises:
            UserError: the prompt is empty, or an intervention is invalid.
        """
        ids, dropped = self.token_ids(text, messages)
        edits = tuple(edit.for_prompt(ids) for edit in to_interventions(interventions))
        trace = self.library.trace_model(self.lm, self.tokenizer, ids, edits)
        prompt = text if isinstance(text, str) else self.tokenizer.decode(list(ids))
        values = {field.name: getattr(trace, field.name) for field in fields(Trace)}
        return ModelRun(**values, text=prompt, owner=self, interventions=edits, dropped=dropped)

    def token_ids(
        self, text: str | Sequence[int] | None = None, messages: Sequence[Message] | None = None
    ) -> tuple[tuple[int, ...], int]:
        """Return the ids of a prompt, with what the model expects before it, and how many were cut from its start."""
        if (text is None) == (messages is None):
            raise UserError("give a text or messages, one of the two")
        if messages is not None:
            return encode_messages(messages, self.tokenizer, self.lm.config.context_length)
        if isinstance(text, str):
            return encode_prompt(text, self.tokenizer, self.lm.config.context_length)
        return tuple(map(int, text)), 0

    def token_id(self, token: str | int) -> int:
        """Return the id of a token that continues a text, such as " She"; UserError if the text is several tokens."""
        if not isinstance(token, str):
            return int(token)
        ids = list(self.tokenizer.encode_continuation(token))
        if len(ids) == 1:
            return ids[0]
        if token in self.tokenizer.vocabulary:
            return self.tokenizer.vocabulary.index(token)
        pieces = ", ".join(repr(self.tokenizer.vocabulary[i]) for i in ids)
        raise UserError(f"{token!r} is no single token of this model, but {pieces or 'none'}")

    def generate(
        self,
        text: str | Sequence[int] | None = None,
        *,
        messages: Sequence[Message] | None = None,
        max_new_tokens: int = DEFAULTS.max_new_tokens,
        temperature: float = DEFAULTS.temperature,
        top_k: int = DEFAULTS.top_k,
        seed: int = DEFAULTS.seed,
        top_p: float = DEFAULTS.top_p,
        min_p: float = DEFAULTS.min_p,
        repetition_penalty: float = DEFAULTS.repetition_penalty,
        stop: str = DEFAULTS.stop_strings,
        interventions: Interventions = (),
    ) -> str:
        """Return the text with which the model continues a prompt; the same seed gives the same text.

        Args:
            text: a prompt, or token ids.
            messages: in place of `text`, for a chat model, as for `run`.
            max_new_tokens: 1 to 512.
            temperature: 0 to 2; 0 always takes the likeliest token.
            top_k: draw from this many likeliest tokens; 0 draws from all.
            seed: of the random numbers.
            top_p: draw from the fewest likeliest tokens that have this probability together.
            min_p: draw from tokens at least this many times as likely as the likeliest.
            repetition_penalty: 1 to 2; makes tokens that were there before less likely.
            stop: the text ends with this text, if it comes up.
            interventions: as for `run`; they act on the generated tokens, too.

        Raises:
            UserError: a setting is out of its range, the prompt is empty, or an intervention is invalid.
        """
        settings = GenerationSettings(
            temperature, top_k, max_new_tokens, seed, top_p, min_p, repetition_penalty, stop
        ).validate()
        ids, dropped = self.token_ids(text, messages)
        edits = tuple(edit.for_prompt(ids) for edit in to_interventions(interventions))
        edits = self.library.resolve_patches(self.lm, self.tokenizer, ids, edits)
        stop_ids = (*self.tokenizer.eos_ids, *(end_of_turn_ids(self.tokenizer) if messages else ()))
        options = {"stop_tokens": stop_ids, "tokenizer": self.tokenizer, "num_dropped": dropped}
        steps = [*generate_with_interventions(self.lm, edits, generate(self.lm, ids, **options, **settings.as_dict()))]
        written = [step.token_id for step in steps if step.token_id not in stop_ids]
        return truncate_at_stop(self.tokenizer.decode_continuation(written, ids), steps[-1].stopped_by)

    def patch(
        self,
        clean: str | Sequence[int],
        corrupted: str | Sequence[int],
        answer: str | int,
        wrong: str | int,
        component: str = "attn.z",
        *,
        direction: str = "denoise",
        metric: str = "logit_difference",
    ) -> np.ndarray:
        """Return how far each value of the clean run, patched alone into the corrupted run, brings back the answer.

        Args:
            clean, corrupted: two prompts of as many tokens, whose answers differ.
            answer, wrong: the next token after each of them, such as " She" and " He".
            component, direction, metric: see `explorer.activation_patching`, where the component is called part.

        Returns:
            (layers, heads) for "attn.z", "attn.q", "attn.k", "attn.v" and "attn.pattern", (layers, positions) for
            "resid_pre", "attn.out" and "ffn.out": 0 where nothing is gained, 1 where the answer is back.

        Raises:
            UserError: the prompts differ in length, or a name or token is unknown.
        """
        prompts = [self.token_ids(text)[0] for text in (clean, corrupted)]
        answers = map(self.token_id, (answer, wrong))
        return activation_patching(self.lm, *prompts, *answers, part=component, direction=direction, metric=metric)

    def page(self, run: "ModelRun | RunComparison | str | None" = None, **selection: Any) -> "ModelPage":
        """Return the page at a run, or at two that are compared: `.launch()` serves it, `.url` is its link.

        Args:
            run: of this model; or a prompt; None: the page's first example.
            selection: what the page shows first, such as view="attention", layer=4, head=4.

        Raises:
            UserError: there is no such view, field or element.
        """
        return ModelPage(self, self.run(run) if isinstance(run, str) else run, selection)

    def checkpoint(self) -> str:
        """Return the model's name in its library; one that was made in Python is saved for it, until Python ends."""
        if not self.name:
            folder = Path(tempfile.mkdtemp(prefix="explorer-model-")) / "model"
            atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
            save_checkpoint(self.lm, None, folder, torch.float32)
            number = sum(name.startswith("model-") for name in self.library.checkpoints) + 1
            folder = folder.rename(folder.with_name(f"model-{number}"))
            self.name = self.library.catalog.open(folder, self.tokenizer)
        return self.name


def to_interventions(interventions: Interventions) -> tuple[Intervention, ...]:
    """Return interventions that are given as text, objects, or several of either.

    Raises:
        UserError: a text is no intervention.
    """
    if isinstance(interventions, str | Intervention):
        interventions = [interventions]
    return tuple(
        edit for item in interventions for edit in (parse_interventions(item) if isinstance(item, str) else [item])
    )


@dataclass(frozen=True, eq=False)
class ModelRun(Trace):
    """A run of a loaded model: a `Trace` that can be drawn, compared and opened in the page.

    `run["blocks.3.attn.pattern"]` is a captured value, `run.values` has all names, `run.figures` those of figures.

    Attributes:
        text: the prompt.
        owner: the model that ran; None once the run was pickled.
        interventions: as they were given.
        dropped: number of tokens cut from the start of a prompt that was too long.
    """

    text: str = ""
    owner: Model | None = None
    interventions: tuple[Intervention, ...] = ()
    dropped: int = 0

    def __reduce__(self) -> tuple:
        make, values = super().__reduce__()
        return make, tuple(None if isinstance(value, Model) else value for value in values)

    def __repr__(self) -> str:
        edits = "".join(f", {edit}" for edit in self.edits)
        return f"<ModelRun of {self.text!r:.60}: {len(self)} tokens, {len(self.values)} values{edits}>"

    def _repr_html_(self) -> str:
        return run_html(self)

    @property
    def figures(self) -> dict[str, tuple[str, ...]]:
        """Names of the figures of this run: view -> panels."""
        return figure_names(self)

    def figure(self, view: str, panel: str | None = None, **selection: Any) -> go.Figure:
        """Draw a figure of the page: `run.figure("attention", layer=4, head=4).show()`.

        Args:
            view: name of a tab, as in the page's URL; `run.figures` lists them.
            panel: name of one of its figures; None: the first.
            selection: fields of the page's URL, such as layer, head, query, key and neuron; what is not given is what
                the page would choose.

        Raises:
            UserError: there is no such view, panel, field or element; the message names the nearest.
        """
        return draw_figure(self, view, panel, **selection)

    def compare(self, other: Trace) -> RunComparison:
        """Return the comparison of this run, A, with another, B: `.show()`, `.figure(view)`, `print(…)`."""
        return RunComparison.from_traces(self, other)


class ModelPage:
    """The page at a run; made by `Model.page`.

    Attributes:
        blocks: Gradio's `Blocks` once it was launched, else None.
    """

    def __init__(self, model: Model, run: "ModelRun | RunComparison | None", selection: dict[str, Any]):
        first, other = (run.trace, run.other) if isinstance(run, RunComparison) else (run, None)
        if "view" in selection:
            selection = selection | {"view": find_view(selection["view"]).name}
        chosen_fields = {}
        if first is not None:  # a URL without them chooses otherwise than `run.figure`
            chosen = select_with_defaults(first, selection)
            chosen_fields = {name: getattr(chosen, name) for name in ("query", "key", "layer", "head", "neuron")}
            other = other or find_patch_source_run(first)
        self.model, self.blocks = model, None
        self._query = run_url_fields(model, first)
        if other is not None:
            owner = getattr(other, "owner", None) or model
            if owner.library is not model.library:
                raise UserError("a page has the models of one device and data type: load both with the same")
            self._query |= {f"b.{name}": value for name, value in run_url_fields(owner, other).items()}
        self._query |= {"depth": "numbers"} | chosen_fields | selection

    @property
    def url(self) -> str:
        """The link to the page at this run; before `launch` with the address that it usually has."""
        base = self.blocks.share_url or self.blocks.local_url if self.blocks else "http://127.0.0.1:7860/"
        return f"{base.rstrip('/')}/?{urlencode(self._query)}"

    def launch(self, **options: Any) -> "ModelPage":
        """Serve the page and return it, with `url` where it is; a script that calls this stays until Ctrl+C.

        Args:
            options: of `gr.Blocks.launch`, such as server_port, share and prevent_thread_lock.
        """
        from explorer.web.page import Page  # Gradio, which takes seconds

        waits = not (options.pop("prevent_thread_lock", False) or is_interactive())
        self.blocks = Page(self.model.library, self.model.checkpoint()).launch(
            **{"quiet": True, "inline": False} | options, prevent_thread_lock=True
        )
        print(f"Running on {self.url}")
        if waits:
            self.blocks.block_thread()
        return self

    def close(self) -> None:
        """Stop serving."""
        if self.blocks:
            self.blocks.close()
            self.blocks = None

    def __repr__(self) -> str:
        return f"<ModelPage {self.url}>"

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        if not self.blocks:
            return f"<code>{url}</code>"
        return f'<iframe src="{url}" width="100%" height="900" style="border:0"></iframe>'


def run_url_fields(model: Model, run: Trace | None) -> dict[str, str]:
    """Return the fields of a model's run in the page's URL, or of the model alone.

    Raises:
        UserError: another model ran.
    """
    query = {"checkpoint": model.checkpoint()}
    if run is None:
        return query
    if run.model != model.library.identity(model.lm):
        raise UserError("this run is of another model: open the page of that model")
    edits = run.interventions if isinstance(run, ModelRun) else run.edits
    dropped = getattr(run, "dropped", 0)
    query |= {"prompt": ".".join(map(str, run.token_ids))} | ({"dropped": str(dropped)} if dropped else {})
    return query | ({"edits": SEPARATOR.join(map(str, edits))} if edits else {})


def find_patch_source_run(run: Trace) -> Trace | None:
    """Return the run that a run's patches take values from; None for none."""
    edits = getattr(run, "interventions", ())
    sources = (edit.source for edit in edits if isinstance(edit, CrossRunIntervention))
    return next((source for source in sources if isinstance(source, Trace)), None)


def is_interactive() -> bool:
    """Return whether Python goes on after this call by itself: in a console or a notebook."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
