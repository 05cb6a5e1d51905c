"""Steering directions: from contrastive prompts; their cosines with the stream, and their effects when added."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.architecture.residual_stream import block_output_tap
from explorer.errors import UserError
from explorer.explain import arithmetic
from explorer.explain.derivation import Derivation, Input, get_element, get_item, read_input
from explorer.explain.notation import format_token_position, token_formatter
from explorer.explain.source_code import SourceLine
from explorer.interventions import AddDirection, DirectionSpec, Intervention
from explorer.tracing.jobs import Job, JobSteps, get_or_run
from explorer.tracing.model_registry import find_tokenizer
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from model.config import ModelConfig, num_parameters
from model.tokenizer import Tokenizer


@dataclass(frozen=True)
class ContrastivePromptLists:
    """Two contrastive lists of prompts, in the vocabulary of the bundled models, whose stories are in English.

    Attributes:
        name: meaning of the direction, to be translated.
        prompts, others: the two lists.
        towards, away: texts of the tokens that it should make likelier and less likely.
        examples: other prompts, to see its effect on.
    """

    name: str
    prompts: tuple[str, ...]
    others: tuple[str, ...]
    towards: str
    away: str
    examples: tuple[str, ...]


PROMPT_LISTS = (
    ContrastivePromptLists(
        N_("happy, not sad"),
        (
            "Tom was happy. He smiled and laughed.",
            "Lily felt so glad that she jumped and sang.",
            "It was the best day. The bear was happy and danced.",
            "The bird sang with joy, and everyone laughed.",
        ),
        (
            "Tom was sad. He cried and cried.",
            "Lily felt so lonely that she wept.",
            "It was the worst day. The bear was sad and cried.",
            "The bird was hurt, and everyone was upset.",
        ),
        " happy",
        " sad",
        (
            "Once upon a time there was a dog. The dog was very",
            "Ben saw his friend. Ben felt",
            "Sara came home. Sara was so",
            "The cat looked at the rain. The cat was",
            "The teacher read the letter. The teacher was",
            "They lost the game. They were",
        ),
    ),
    ContrastivePromptLists(
        N_("she, not he"),
        (
            "Lily went to the park. She was glad, and she played with her doll.",
            "Mia was a girl. She loved her mom.",
            "The queen smiled. She took her crown.",
            "Sara ran home. She saw her sister.",
        ),
        (
            "Tom went to the park. He was glad, and he played with his car.",
            "Ben was a boy. He loved his dad.",
            "The king smiled. He took his crown.",
            "Sam ran home. He saw his brother.",
        ),
        " She",
        " He",
        (
            "Once upon a time there was a cat.",
            "The teacher came into the room.",
            "The little rabbit wanted to play.",
            "One day a bird flew away.",
            "Tom found a key.",
            "Lily found a key.",
        ),
    ),
    ContrastivePromptLists(
        N_("asked, not said"),
        (
            '"Why are you sad?" asked Tom.',
            '"What is that?" asked Lily. "Where is it?"',
            '"Can I help you?" asked the bird. "Who are you?"',
            '"Do you want to play?" asked Ben.',
        ),
        (
            '"I am sad," said Tom.',
            '"That is a ball," said Lily. "It is here."',
            '"I will help you," said the bird. "I am a bird."',
            '"I want to play," said Ben.',
        ),
        " asked",
        " said",
        (
            '"Hello, little bird," Tom',
            '"Is it far?" Lily',
            '"I like you," the cat',
            'The boy looked up. "Mom," he',
            '"Look at this!" Sara',
            '"Please," the bear',
        ),
    ),
)


MAX_CHARACTERS = 10_000  # of both lists together; more than the tokens that a direction may have
ALPHA = 0.3  # multiple of ‖x‖ that is added if the run adds nothing


def direction_from_prompts(trace: Trace, lists: ContrastivePromptLists) -> DirectionSpec:
    """Return the difference of means of two prompt lists after the middle layer.

    Prompts longer than the context are truncated to their last tokens.
    """
    layer, max_tokens = trace.config.num_layers // 2, trace.config.context_length
    token_lists = (
        [encode_prompt(trace, text)[-max_tokens:] for text in texts] for texts in (lists.prompts, lists.others)
    )
    return DirectionSpec.from_means(layer, *token_lists)


def direction_from_texts(trace: Trace, layer: int, texts: Sequence[str], other_texts: Sequence[str]) -> DirectionSpec:
    """Return the direction from the mean stream over `other_texts` to that over `texts`, after a layer.

    Raises:
        UserError: a list is empty or too long, a text exceeds the context, the means are equal, or
            the tokenizer is unknown.
    """
    if not trace_tokenizer(trace):
        raise UserError(_("This model’s tokenizer is not one that cuts texts here: take another direction."))
    if (characters := sum(map(len, (*texts, *other_texts)))) > MAX_CHARACTERS:
        message = _("both lists together have at most {most:,} characters, got {got:,}: leave some prompts out")
        raise UserError(message.format(most=MAX_CHARACTERS, got=characters))
    spec = DirectionSpec.from_means(
        layer, *([encode_prompt(trace, text) for text in prompts] for prompts in (texts, other_texts))
    )
    spec.check(trace.config)
    trace.direction(spec)  # raises if it is zero
    return spec


def decode_prompt_lists(trace: Trace, spec: DirectionSpec) -> tuple[list[str], ...]:
    """Return the texts of the prompt lists of a direction; empty for other kinds of directions."""
    text_tokenizer = trace_tokenizer(trace)
    return tuple([text_tokenizer.decode(list(prompt)) for prompt in prompts] for prompts in spec.lists)


def prompt_lists_by_direction(trace: Trace) -> dict[str, ContrastivePromptLists]:
    """Return the built-in prompt lists by the text form of their directions; {} if the tokenizer is unknown."""
    return (
        {str(direction_from_prompts(trace, lists)): lists for lists in PROMPT_LISTS} if trace_tokenizer(trace) else {}
    )


def parse_direction_or_default(trace: Trace, text: str) -> DirectionSpec:
    """Parse a direction; the first built-in one if the text is invalid for this model."""
    try:
        spec = DirectionSpec.parse(text)
        spec.check(trace.config)
    except UserError:
        return DirectionSpec.parse(next(iter(prompt_lists_by_direction(trace)), "unembed.0"))
    return spec


def encode_prompt(trace: Trace, text: str) -> list[int]:
    """Return the token ids of a text, with the BOS token if the model expects one."""
    text_tokenizer = trace_tokenizer(trace)
    return [*text_tokenizer.bos_ids, *text_tokenizer.encode(text)]


def trace_tokenizer(trace: Trace) -> Tokenizer | None:
    """Return the tokenizer of the model that ran; None if it is unknown."""
    return find_tokenizer(trace.model) if trace.token_bytes else None


def embed_and_block_output_taps(config: ModelConfig) -> list[str]:
    """Return the taps of the stream: the embedding, then the output of each block."""
    return ["embed", *(block_output_tap(config, layer) for layer in range(config.num_layers))]


def direction_cosines(trace: Trace, direction: np.ndarray) -> np.ndarray:
    """Return the cosine of every token's stream x with a direction u at each of `depths`, (L + 1, T).

    x·u / (‖x‖ ‖u‖); 0 for a zero vector.

    Raises:
        UserError: the direction does not have the width of the stream, or is zero.
    """
    if direction.shape != (trace.config.d_model,) or not np.linalg.norm(direction) > 0:
        message = _(
            "a direction has as many numbers as the stream is wide, {wanted}, and is not 0; got {got}: take one of "
            "this model",
            wanted=trace.config.d_model,
            got=" × ".join(map(str, direction.shape)),
        )
        raise UserError(message)
    taps = embed_and_block_output_taps(trace.config)
    streams = np.stack([trace[name] for name in taps]).astype(np.float64)  # (L + 1, T, D)
    norms = np.linalg.norm(streams, axis=-1) * np.linalg.norm(direction)
    return np.divide(streams @ direction, norms, out=np.zeros_like(norms), where=norms > 0)


@dataclass(frozen=True)
class SteeringEffectsByPrompt:
    """Effects of adding a direction after every example prompt.

    Attributes:
        prompts: (N,) token ids of the examples.
        before, after: (N,) logit difference of two tokens, without and with the direction added.
        token_id, contrast_id: the two tokens.
        edit: the intervention that adds the direction.
    """

    prompts: tuple[tuple[int, ...], ...]
    before: np.ndarray
    after: np.ndarray
    token_id: int
    contrast_id: int
    edit: Intervention

    @property
    def changes(self) -> np.ndarray:
        return self.after - self.before

    @property
    def num_reversed(self) -> int:
        """Number of examples whose effect has the opposite sign of the added amount."""
        return int((self.changes * np.sign(self.edit.amount) < 0).sum())


def steering_intervention(trace: Trace, spec: DirectionSpec, layer: int) -> Intervention:
    """Return the run's intervention that adds a direction; without one, an addition of `ALPHA` after a layer."""
    matching_edits = (
        intervention
        for intervention in trace.edits
        if isinstance(intervention, AddDirection) and intervention.direction == spec and intervention.amount
    )
    return next(matching_edits, AddDirection(f"blocks.{layer}.resid_post", ALPHA, by=str(spec)))


def steering_effects_on_prompts(
    trace: Trace, spec: DirectionSpec, layer: int, token_id: int, contrast_id: int
) -> SteeringEffectsByPrompt:
    """Return the effects of a direction on example prompts.

    A direction from built-in prompt lists uses their examples and their two tokens; any other uses all examples
    and the given tokens. If the tokenizer is unknown, the run's own text is the only example.

    Raises:
        ResultNotReadyError: a page request needs a result that is not computed yet.
    """
    lists = prompt_lists_by_direction(trace)
    own_lists = next(
        (
            prompt_lists
            for text, prompt_lists in lists.items()
            if spec.lists and DirectionSpec.parse(text).lists == spec.lists
        ),
        None,
    )
    if own_lists:
        token_id, contrast_id = (
            trace_tokenizer(trace).encode_continuation(text)[0] for text in (own_lists.towards, own_lists.away)
        )
    texts = (
        own_lists.examples
        if own_lists
        else tuple(text for prompt_lists in lists.values() for text in prompt_lists.examples)
    )
    intervention = steering_intervention(trace, spec, layer)
    intervention = AddDirection(
        intervention.tap, intervention.amount, by=intervention.by
    )  # at all positions: those of an example differ from the run's
    prompts = tuple(tuple(encode_prompt(trace, text)[-trace.config.context_length :]) for text in texts) or (
        trace.token_ids,
    )
    logit_differences = get_or_run(_job(trace, prompts, intervention, token_id, contrast_id))
    return SteeringEffectsByPrompt(
        prompts, logit_differences[:, 0], logit_differences[:, 1], token_id, contrast_id, intervention
    )


def _job(
    trace: Trace, prompts: Sequence[tuple[int, ...]], intervention: Intervention, token_id: int, contrast_id: int
) -> Job:
    def run() -> JobSteps:
        logit_differences = np.empty((len(prompts), 2))
        for i, prompt in enumerate(prompts):
            for j, interventions in enumerate(((), (intervention,))):
                target_logit, contrast_logit = (
                    trace.logit_and_log_probability(len(prompt) - 1, compared_id, interventions, token_ids=prompt)[0]
                    for compared_id in (token_id, contrast_id)
                )
                logit_differences[i, j] = target_logit - contrast_logit
            yield i + 1
        return logit_differences

    macs = 4 * sum(map(len, prompts)) * num_parameters(trace.config)
    key = "steering", trace.model, tuple(prompts), intervention, token_id, contrast_id
    return Job(key, run, len(prompts), macs)


FILE = "explorer/analysis/steering.py"


def direction_cosine(trace: Trace, spec: DirectionSpec, depth: int, position: int) -> Derivation:
    """Derive the cosine of a token's stream at a depth with a direction."""
    unit = trace.direction(spec)
    displayed_value = get_element(direction_cosines(trace, unit), depth, position)
    x, read = read_input(trace, get_item(embed_and_block_output_taps(trace.config), depth), position)
    working = arithmetic.cosine(
        (x, read), (unit, Input(spec.describe(token_formatter(trace)), (), unit.shape)), ("x", "u")
    )
    location = _("of {token}", token=format_token_position(trace, position))
    return Derivation(
        _("cosine with the direction"),
        location,
        displayed_value,
        working,
        SourceLine(FILE, "return np.divide(streams @"),
    )


def steering_effect(trace: Trace, effects: SteeringEffectsByPrompt, index: int) -> Derivation:
    """Derive the effect of adding a direction after the example of an index, by running the model again."""
    displayed_value = get_element(effects.changes, index)
    prompt = effects.prompts[index]
    logit_differences = []
    for interventions in ((), (effects.edit,)):
        target_logit, contrast_logit = (
            trace.logit_and_log_probability(len(prompt) - 1, compared_id, interventions, token_ids=prompt)[0]
            for compared_id in (effects.token_id, effects.contrast_id)
        )
        logit_differences.append(float(target_logit - contrast_logit))
    before, after = logit_differences
    inputs = tuple(
        Input(name, (), (trace.config.vocab_size,))
        for name in (_("logits of a run with {edit}", edit=effects.edit.location_key), _("logits of a run as it is"))
    )
    working = arithmetic.difference(_("changed − unchanged"), after, before, inputs)
    return Derivation(
        _("change of the lead"),
        token_formatter(trace)(prompt),
        displayed_value,
        working,
        SourceLine(FILE, "return self.after - self.before"),
    )
