"""Guessing the next word before the model's guesses are seen."""

from collections.abc import Sequence
from typing import Any

from explorer.analysis.largest import largest_first
from explorer.analysis.next_token import NextToken
from explorer.explain.notation import quoted
from explorer.language import _
from explorer.state.settings import GenerationSettings
from explorer.views.token_bars import percent
from explorer.web.widgets.distribution.words import settings_words
from explorer.web.widgets.widget import Widget, with_words

SHOWN = 6  # of the model's guesses
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


class Guess(Widget):
    """Asks for a guess, then shows the chances that the next token is drawn with and that of the guess, and writes one
    more token.

    On a first visit the chances are hidden until they are asked for; later they are seen at once, until somebody wants
    to guess again. The visitor's guess is the state's `guess`. Emits "step" to write a token.
    """

    EMITS = ("step",)

    def __init__(self, **kwargs):
        html = with_words(
            HTML,
            ask=_("What comes next? Your guess:"),
            placeholder=_("a word, if you like"),
            see=_("See the model’s guesses"),
            again=_("Guess again"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        prediction: NextToken,
        vocabulary: Sequence[str],
        settings: GenerationSettings,
        after: str,
        guess: str = "",
        before: NextToken | None = None,
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            prediction: what the next token is drawn from.
            vocabulary: the text of every token id.
            settings: those of the prediction.
            after: the token that it follows.
            guess: a word, in any letters; "" for none.
            before: the prediction that the token `after` was drawn from, with its random number; None where it was not
                generated.
        """
        sampled = prediction.sampled
        shown = [
            {
                "token": vocabulary[token_id],
                "share": float(sampled[token_id]),
                "percent": percent(float(sampled[token_id])),
            }
            for token_id in largest_first(sampled, SHOWN)
            if sampled[token_id] > 0
        ]
        return {
            "tokens": shown,
            "how": _("Drawn with {settings}.", settings=settings_words(settings)),
            "told": judge_guess(prediction, vocabulary, guess) if guess.strip() else "",
            "wrote": tell_draw(before, vocabulary, settings) if before else "",
            "after": quoted(after),
            "is_last": prediction.actual is None,
        }


def tell_draw(before: NextToken, vocabulary: Sequence[str], settings: GenerationSettings) -> str:
    """Say how the text's token was drawn; "" where these settings draw another one, as it was written otherwise."""
    token_id = before.drawn
    if token_id != before.actual:
        return ""
    token = quoted(vocabulary[token_id])
    if settings.temperature == 0:
        return _("{token} was the likeliest token, which temperature 0 always takes.", token=token)
    chance = percent(float(before.sampled[token_id]))
    return _("A random number fell on {token}; its chance was {percent}.", token=token, percent=chance)


def judge_guess(prediction: NextToken, vocabulary: Sequence[str], guess: str) -> str:
    """Say how likely a guess is: of the tokens that are this word the likeliest one counts, or else of those that it
    could begin with the longest."""
    word, sampled = guess.strip().casefold(), prediction.sampled
    texts = [text.strip().casefold() for text in vocabulary]
    same = [token_id for token_id, text in enumerate(texts) if text == word]
    begins = same or [token_id for token_id, text in enumerate(texts) if text and word.startswith(text)]
    if not begins:
        return _("The model has no token that your guess {guess} could begin with.", guess=quoted(guess.strip()))
    best = max(begins, key=lambda token_id: (len(texts[token_id]), sampled[token_id], prediction.plain[token_id]))
    values = {
        "guess": quoted(guess.strip()),
        "token": quoted(vocabulary[best]),
        "percent": percent(float(sampled[best])),
        "rank": int((sampled > sampled[best]).sum()) + 1 if sampled[best] > 0 else prediction.rank(best),
        "size": len(vocabulary),
    }
    if sampled[best] == 0:
        if same:
            return _("Your guess {guess}: {token} is too unlikely to be drawn, place {rank:,} of {size:,}.", **values)
        told = _("Your guess {guess} could begin with {token}: too unlikely to be drawn, place {rank:,} of {size:,}.")
        return told.format(**values)
    if same:
        return _("Your guess {guess}: {token} has {percent}, place {rank:,} of {size:,}.", **values)
    return _("Your guess {guess} could begin with {token}: {percent}, place {rank:,} of {size:,}.", **values)
