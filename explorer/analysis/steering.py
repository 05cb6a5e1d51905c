"""Directions in the residual stream: which there are, what of the stream lies along one, and what it does to
predictions when it is added, example by example."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.architecture.stream import block_output
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import Add, Intervention, Recipe
from explorer.state.prompt_lists import PROMPT_LISTS, PromptLists
from explorer.tracing.jobs import Job, Pieces, worked_out
from explorer.tracing.models import tokenizer_of
from explorer.tracing.trace import Trace
from model.counting import num_parameters
from model.tokenizer import Tokenizer

MOST_CHARACTERS = 10_000  # of two lists that somebody writes: more than the tokens that a recipe may have
ALPHA = 0.3  # lengths of the stream that are added where a run adds nothing


def recipe_of(trace: Trace, lists: PromptLists) -> Recipe:
    """Of two lists of prompts, from the stream after the middle layer; of a prompt the last tokens that fit."""
    layer, most = trace.config.num_layers // 2, trace.config.context_length
    both = ([encoded(trace, text)[-most:] for text in each] for each in (lists.prompts, lists.others))
    return Recipe.of_means(layer, *both)


def recipe_of_texts(trace: Trace, layer: int, texts: Sequence[str], others: Sequence[str]) -> Recipe:
    """From the mean of the stream after a layer over some texts to that over others.

    Raises:
        UserError: a list is empty or too long, a text is longer than what the model sees, both lists have one mean, or
            the tokenizer is unknown.
    """
    if not tokenizer(trace):
        raise UserError(_("This model’s tokenizer is not one that cuts texts here: take another direction."))
    if (characters := sum(map(len, (*texts, *others)))) > MOST_CHARACTERS:
        told = _("both lists together have at most {most:,} characters, got {got:,}: leave some prompts out")
        raise UserError(told.format(most=MOST_CHARACTERS, got=characters))
    recipe = Recipe.of_means(layer, *([encoded(trace, text) for text in each] for each in (texts, others)))
    recipe.check(trace.config)
    trace.direction(recipe)  # it may be 0
    return recipe


def texts_of(trace: Trace, recipe: Recipe) -> tuple[list[str], ...]:
    """Of a recipe's two lists; none of other kinds."""
    own = tokenizer(trace)
    return tuple([own.decode(list(prompt)) for prompt in each] for each in recipe.lists)


def lists_of(trace: Trace) -> dict[str, PromptLists]:
    """The lists that there are by the texts of their recipes; none of a trace whose tokenizer is unknown."""
    return {str(recipe_of(trace, each)): each for each in PROMPT_LISTS} if tokenizer(trace) else {}


def chosen_direction(trace: Trace, text: str) -> Recipe:
    """The direction of that text; the first of those offered where it is none of the model's."""
    try:
        recipe = Recipe.parse(text)
        recipe.check(trace.config)
    except UserError:
        return Recipe.parse(next(iter(lists_of(trace)), "unembed.0"))
    return recipe


def encoded(trace: Trace, text: str) -> list[int]:
    """Token ids of a text, after what the model expects before every text."""
    own = tokenizer(trace)
    return [*own.beginning, *own.encode(text)]


def tokenizer(trace: Trace) -> Tokenizer | None:
    """Of the model that ran; None where it is unknown."""
    return tokenizer_of(trace.model) if trace.token_bytes else None


def depths(trace: Trace) -> list[str]:
    """Names of the stream's values from the embedding down, as each block leaves it."""
    return ["embed", *(block_output(trace.config, layer) for layer in range(trace.config.num_layers))]


def cosines(trace: Trace, direction: np.ndarray) -> np.ndarray:
    """(L + 1, T) cosine of every token's stream x at each of `depths` with a direction u: x·u / (‖x‖ ‖u‖).

    Raises:
        UserError: the direction is not as wide as the stream, or has no length.
    """
    if direction.shape != (trace.config.d_model,) or not np.linalg.norm(direction) > 0:
        told = _(
            "a direction has as many numbers as the stream is wide, {wanted}, and is not 0; got {got}: take one of "
            "this model",
            wanted=trace.config.d_model,
            got=" × ".join(map(str, direction.shape)),
        )
        raise UserError(told)
    streams = np.stack([trace[name] for name in depths(trace)]).astype(np.float64)  # (L + 1, T, D)
    lengths = np.linalg.norm(streams, axis=-1) * np.linalg.norm(direction)
    return np.divide(streams @ direction, lengths, out=np.zeros_like(lengths), where=lengths > 0)


@dataclass(frozen=True)
class Effects:
    """What adding a direction does after every example.

    Attributes:
        prompts: (N,) token ids of the examples.
        before, after: (N,) logit of a token less that of another, as the model is, and with the direction added.
        token_id, rival_id: which two.
        edit: what adds it.
    """

    prompts: tuple[tuple[int, ...], ...]
    before: np.ndarray
    after: np.ndarray
    token_id: int
    rival_id: int
    edit: Intervention

    @property
    def changes(self) -> np.ndarray:
        return self.after - self.before

    @property
    def backwards(self) -> int:
        """How many examples go against the sign of what is added: likelier where it is taken off, or less likely."""
        return int((self.changes * np.sign(self.edit.amount) < 0).sum())


def added(trace: Trace, recipe: Recipe, layer: int) -> Intervention:
    """How the run adds a direction to the stream; where it does not, `ALPHA` after a layer."""
    found = (edit for edit in trace.edits if isinstance(edit, Add) and edit.recipe == recipe and edit.amount)
    return next(found, Add(f"blocks.{layer}.resid_post", ALPHA, by=str(recipe)))


def effects(trace: Trace, recipe: Recipe, layer: int, token_id: int, rival_id: int) -> Effects:
    """Of a direction on each example of its lists, and on their two tokens; of any other on all examples there are and
    on the tokens given. Where the tokenizer is unknown the run's own text is the one example.

    Raises:
        NotYet: it is asked for in an answer of the page, and not there.
    """
    lists = lists_of(trace)
    own = next(
        (each for text, each in lists.items() if recipe.lists and Recipe.parse(text).lists == recipe.lists), None
    )
    if own:
        token_id, rival_id = (tokenizer(trace).encode_continuation(text)[0] for text in (own.towards, own.away))
    texts = own.examples if own else tuple(text for each in lists.values() for text in each.examples)
    edit = added(trace, recipe, layer)
    edit = Add(edit.tap, edit.amount, by=edit.by)  # everywhere: an example has other positions than the run
    prompts = tuple(tuple(encoded(trace, text)[-trace.config.context_length :]) for text in texts) or (trace.token_ids,)
    found = worked_out(_job(trace, prompts, edit, token_id, rival_id))
    return Effects(prompts, found[:, 0], found[:, 1], token_id, rival_id, edit)


def _job(trace: Trace, prompts: Sequence[tuple[int, ...]], edit: Intervention, token_id: int, rival_id: int) -> Job:
    def pieces() -> Pieces:
        leads = np.empty((len(prompts), 2))
        for i, prompt in enumerate(prompts):
            for j, edits in enumerate(((), (edit,))):
                token, rival = (
                    trace.outcome(len(prompt) - 1, each, edits, token_ids=prompt)[0] for each in (token_id, rival_id)
                )
                leads[i, j] = token - rival
            yield i + 1
        return leads

    products = 4 * sum(map(len, prompts)) * num_parameters(trace.config)
    question = "steering", trace.model, tuple(prompts), edit, token_id, rival_id
    return Job(question, pieces, len(prompts), products)
