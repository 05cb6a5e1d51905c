"""The next token's distribution, and where the random number falls in it, in sentences."""

from collections.abc import Sequence

from explorer.analysis.next_token import NextToken
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.state.settings import GenerationSettings


def summary(prediction: NextToken, vocabulary: Sequence[str], after: str, position: int) -> str:
    """The distribution in a sentence or two."""
    kept = int((prediction.sampled > 0).sum())
    drawn = _(
        "After {token} (position {position}): {kept:,} of {size:,} tokens can be drawn, entropy {entropy} bits after "
        "temperature and filters; the model’s own is {own}.",
        token=quoted(after),
        position=position,
        kept=kept,
        size=len(prediction.sampled),
        entropy=number(prediction.entropy),
        own=number(prediction.plain_entropy),
    )
    if prediction.actual is None:
        return drawn
    goes_on = _(
        "The text goes on with {token}, rank {rank:,}, the model’s probability {probability}.",
        token=quoted(vocabulary[prediction.actual]),
        rank=prediction.rank(prediction.actual),
        probability=number(prediction.plain[prediction.actual]),
    )
    return f"{drawn} {goes_on}"


def luck_words(vocabulary: Sequence[str], seed: int, u: float, drawn: int, actual: int | None) -> str:
    """Which token the random number draws.

    Args:
        u: the random number of this seed and position.
        drawn: the token it falls on.
        actual: the token that the text has here, None at its end.
    """
    values = {"seed": seed, "u": number(u), "token": quoted(vocabulary[drawn])}
    if actual is None:
        return _(
            "With seed {seed} the random number here is u = {u}: it falls on {token}. Step would draw that.", **values
        )
    if actual == drawn:
        return _(
            "With seed {seed} the random number here is u = {u}: it falls on {token} and would draw what the text has.",
            **values,
        )
    return _(
        "With seed {seed} the random number here is u = {u}: it falls on {token} and would draw that; the text has "
        "{other}.",
        other=quoted(vocabulary[actual]),
        **values,
    )


def settings_words(settings: GenerationSettings) -> str:
    """Name the settings that the next token is drawn with: the temperature, and what else changes anything."""
    neutral = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
    if settings.temperature == 0:
        return _("temperature 0, which always takes the likeliest token")
    words = {
        "top_k": _("top-k {value}", value=settings.top_k),
        "top_p": _("top-p {value:g}", value=settings.top_p),
        "min_p": _("min-p {value:g}", value=settings.min_p),
        "repetition_penalty": _("repetition penalty {value:g}", value=settings.repetition_penalty),
    }
    said = [words[name] for name, value in neutral.items() if getattr(settings, name) != value]
    return ", ".join([_("temperature {value:g}", value=settings.temperature), *said])
