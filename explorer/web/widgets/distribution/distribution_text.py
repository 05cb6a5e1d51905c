"""Text about the next token's distribution and the random number."""

from collections.abc import Sequence

from explorer.analysis.next_token import NextTokenDistribution
from explorer.explain.notation import format_number, quote_token
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import _


def summarise_distribution(
    prediction: NextTokenDistribution, vocabulary: Sequence[str], after: str, position: int
) -> str:
    """Summarise the distribution in a sentence or two."""
    num_candidates = int((prediction.sampled > 0).sum())
    text = _(
        "After {token} (position {position}): {kept:,} of {size:,} tokens can be drawn, entropy {entropy} bits after "
        "temperature and filters; the model’s own is {own}.",
        token=quote_token(after),
        position=position,
        kept=num_candidates,
        size=len(prediction.sampled),
        entropy=format_number(prediction.entropy),
        own=format_number(prediction.plain_entropy),
    )
    if prediction.actual is None:
        return text
    actual_text = _(
        "The text goes on with {token}, rank {rank:,}, the model’s probability {probability}.",
        token=quote_token(vocabulary[prediction.actual]),
        rank=prediction.rank(prediction.actual),
        probability=format_number(prediction.plain[prediction.actual]),
    )
    return f"{text} {actual_text}"


def random_draw_text(vocabulary: Sequence[str], seed: int, u: float, sampled_id: int, actual: int | None) -> str:
    """Return a sentence on the token that the random number selects.

    Args:
        u: the random number of this seed and position.
        sampled_id: the token that it selects.
        actual: the token that the text has here; None at its end.
    """
    values = {"seed": seed, "u": format_number(u), "token": quote_token(vocabulary[sampled_id])}
    if actual is None:
        return _(
            "With seed {seed} the random number here is u = {u}: it falls on {token}. Step would draw that.", **values
        )
    if actual == sampled_id:
        return _(
            "With seed {seed} the random number here is u = {u}: it falls on {token} and would draw what the text has.",
            **values,
        )
    return _(
        "With seed {seed} the random number here is u = {u}: it falls on {token} and would draw that; the text has "
        "{other}.",
        other=quote_token(vocabulary[actual]),
        **values,
    )


def format_settings(settings: GenerationSettings) -> str:
    """Format the settings that the next token is sampled with: the temperature, and others that are not neutral."""
    neutral = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
    if settings.temperature == 0:
        return _("temperature 0, which always takes the likeliest token")
    texts = {
        "top_k": _("top-k {value}", value=settings.top_k),
        "top_p": _("top-p {value:g}", value=settings.top_p),
        "min_p": _("min-p {value:g}", value=settings.min_p),
        "repetition_penalty": _("repetition penalty {value:g}", value=settings.repetition_penalty),
    }
    changed_texts = [texts[name] for name, value in neutral.items() if getattr(settings, name) != value]
    return ", ".join([_("temperature {value:g}", value=settings.temperature), *changed_texts])
