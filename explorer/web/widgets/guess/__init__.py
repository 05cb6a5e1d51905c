"""Guessing the next token before the model's prediction is shown."""

from collections.abc import Sequence
from typing import Any

from explorer.analysis.next_token import NextTokenDistribution
from explorer.analysis.top_indices import top_indices
from explorer.explain.notation import quote_token
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import _
from explorer.views.token_bars import format_percent
from explorer.web.widgets.distribution.distribution_text import format_settings
from explorer.web.widgets.widget import Widget, fill_template

NUM_TOKENS = 6  # of the model's guesses
HTML = """<div class="guess" hidden>
<form>
  <label>{ask} <input maxlength="40" autocomplete="off" spellcheck="false" placeholder="{placeholder}"></label>
  <button type="submit" class="see">{see}</button>
</form>
<div class="seen" hidden>
  <p class="heading"></p>
  <ol></ol>
  <p class="how"></p>
  <output></output>
  <p class="act">
    <span class="first"></span>
    <button type="button" class="next"></button>
    <button type="button" class="again">{again}</button>
  </p>
</div>
</div>"""


class NextTokenGuess(Widget):
    """Asks for a guess, then shows the probabilities of the likeliest tokens and of the guess.

    On a first visit the probabilities are hidden until requested; later they are visible until the user guesses
    again. The user's guess is the state's `guess`. A button emits "step" to generate a token.
    """

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            ask=_("What comes next? Your guess:"),
            placeholder=_("a word, if you like"),
            see=_("See the model’s guesses"),
            again=_("Guess again"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        prediction: NextTokenDistribution,
        vocabulary: Sequence[str],
        settings: GenerationSettings,
        after: str,
        guess: str = "",
        before: NextTokenDistribution | None = None,
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            prediction: the distribution that the next token is sampled from.
            vocabulary: text of each token id.
            settings: those of the prediction.
            after: text of the token before.
            guess: a word in any case; "" for none.
            before: the prediction that the token `after` was sampled from; None if it was not generated.
        """
        sampled = prediction.sampled
        tokens = [
            {
                "token": vocabulary[token_id],
                "share": float(sampled[token_id]),
                "percent": format_percent(float(sampled[token_id])),
            }
            for token_id in top_indices(sampled, NUM_TOKENS)
            if sampled[token_id] > 0
        ]
        return {
            "tokens": tokens,
            "how": _("Drawn with {settings}.", settings=format_settings(settings)),
            "told": describe_guess(prediction, vocabulary, guess) if guess.strip() else "",
            "wrote": describe_sampled_token(before, vocabulary, settings) if before else "",
            "after": quote_token(after),
            "is_last": prediction.actual is None,
        }


def describe_sampled_token(
    before: NextTokenDistribution, vocabulary: Sequence[str], settings: GenerationSettings
) -> str:
    """Return a sentence on how a generated token was sampled; "" if these settings would sample another one."""
    token_id = before.sampled_token_id
    if token_id != before.actual:
        return ""
    token = quote_token(vocabulary[token_id])
    if settings.temperature == 0:
        return _("{token} was the likeliest token, which temperature 0 always takes.", token=token)
    chance = format_percent(float(before.sampled[token_id]))
    return _("A random number fell on {token}; its chance was {percent}.", token=token, percent=chance)


def describe_guess(prediction: NextTokenDistribution, vocabulary: Sequence[str], guess: str) -> str:
    """Return a sentence on the probability of a guess.

    Counts the likeliest token that equals the word, or else the longest one that the word begins with.
    """
    word, sampled = guess.strip().casefold(), prediction.sampled
    texts = [text.strip().casefold() for text in vocabulary]
    exact_ids = [token_id for token_id, text in enumerate(texts) if text == word]
    candidate_ids = exact_ids or [token_id for token_id, text in enumerate(texts) if text and word.startswith(text)]
    if not candidate_ids:
        return _("The model has no token that your guess {guess} could begin with.", guess=quote_token(guess.strip()))
    best = max(
        candidate_ids, key=lambda token_id: (len(texts[token_id]), sampled[token_id], prediction.plain[token_id])
    )
    values = {
        "guess": quote_token(guess.strip()),
        "token": quote_token(vocabulary[best]),
        "percent": format_percent(float(sampled[best])),
        "rank": int((sampled > sampled[best]).sum()) + 1 if sampled[best] > 0 else prediction.rank(best),
        "size": len(vocabulary),
    }
    if sampled[best] == 0:
        if exact_ids:
            return _("Your guess {guess}: {token} is too unlikely to be drawn, place {rank:,} of {size:,}.", **values)
        template = _(
            "Your guess {guess} could begin with {token}: too unlikely to be drawn, place {rank:,} of {size:,}."
        )
        return template.format(**values)
    if exact_ids:
        return _("Your guess {guess}: {token} has {percent}, place {rank:,} of {size:,}.", **values)
    return _("Your guess {guess} could begin with {token}: {percent}, place {rank:,} of {size:,}.", **values)
