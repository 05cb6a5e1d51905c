"""The next token's distribution, and where the random number falls in it, in sentences."""

from collections.abc import Sequence

from explorer.analysis.next_token import NextToken
from explorer.explain.notation import number, quoted


def summary(prediction: NextToken, vocabulary: Sequence[str], after: str, position: int) -> str:
    """The distribution in a sentence or two."""
    kept = int((prediction.sampled > 0).sum())
    text = (
        f"After {quoted(after)} (position {position}): {kept:,} of {len(prediction.sampled):,} tokens can be drawn, "
        f"entropy {number(prediction.entropy)} bits after temperature and filters; the model’s own is "
        f"{number(prediction.plain_entropy)}."
    )
    if prediction.actual is not None:
        probability = prediction.plain[prediction.actual]
        text += (
            f" The text goes on with {quoted(vocabulary[prediction.actual])}, "
            f"rank {prediction.rank(prediction.actual):,}, the model’s probability {number(probability)}."
        )
    return text


def luck_words(vocabulary: Sequence[str], seed: int, u: float, drawn: int, actual: int | None) -> str:
    """Which token the random number draws.

    Args:
        u: the random number of this seed and position.
        drawn: the token it falls on.
        actual: the token that the text has here, None at its end.
    """
    text = f"With seed {seed} the random number here is u = {number(u)}: it falls on {quoted(vocabulary[drawn])}"
    if actual is None:
        return f"{text}. Step would draw that."
    if actual == drawn:
        return f"{text} and would draw what the text has."
    return f"{text} and would draw that; the text has {quoted(vocabulary[actual])}."
