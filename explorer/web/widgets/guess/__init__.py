"""Guessing the next word before the model's guesses are seen."""

from collections.abc import Sequence
from typing import Any

from explorer.analysis.next_token import NextToken
from explorer.explain.notation import quoted
from explorer.language import _
from explorer.views.token_bars import percent
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
  <output></output>
  <p class="act">
    <span class="first"></span>
    <button type="button" class="next"></button>
    <button type="button" class="again">{again}</button>
  </p>
</div>
</div>"""


class Guess(Widget):
    """Asks for a guess, then shows the model's and how likely it found the visitor's, and writes one more token.

    On a first visit the model's guesses are hidden until they are asked for; later they are seen at once, until
    somebody wants to guess again. The visitor's guess is the state's `guess`. Emits "step" to write a token.
    """

    EMITS = ("step",)

    def __init__(self, **kwargs):
        html = with_words(
            HTML,
            ask=_("What word comes next? Your guess:"),
            placeholder=_("a word, if you like"),
            see=_("See the model’s guesses"),
            again=_("Guess again"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(prediction: NextToken, vocabulary: Sequence[str], after: str, guess: str) -> dict[str, Any]:
        """The widget's value.

        Args:
            prediction: one with a random number.
            vocabulary: the text of every token id.
            after: the token that it follows.
            guess: a word, in any letters; "" for none.
        """
        plain = prediction.plain
        shown = [
            {"token": vocabulary[token_id], "share": float(plain[token_id]), "percent": percent(float(plain[token_id]))}
            for token_id in prediction.top(SHOWN)
        ]
        drawn = prediction.drawn
        return {
            "tokens": shown,
            "told": told(prediction, vocabulary, guess) if guess else "",
            "drawn": {"token": quoted(vocabulary[drawn]), "percent": percent(float(plain[drawn]))},
            "after": quoted(after),
            "is_last": prediction.actual is None,
        }


def told(prediction: NextToken, vocabulary: Sequence[str], guess: str) -> str:
    """How likely the model found a guess: the likeliest token that is this word, or else how the word can begin."""
    word = guess.strip().casefold()
    texts = [text.strip().casefold() for text in vocabulary]
    same = [token_id for token_id, text in enumerate(texts) if text == word]
    if same:
        best = max(same, key=lambda token_id: prediction.plain[token_id])
        return _(
            "Your guess {word}: the model gives it {percent}, place {rank:,} of {size:,}.",
            word=quoted(vocabulary[best]),
            percent=percent(float(prediction.plain[best])),
            rank=prediction.rank(best),
            size=len(vocabulary),
        )
    begins = [token_id for token_id, text in enumerate(texts) if text and word.startswith(text)]
    if not begins:
        return _("The model has no token that {word} could begin with.", word=quoted(word))
    best = max(begins, key=lambda token_id: (len(texts[token_id]), prediction.plain[token_id]))
    return _(
        "{word} is no single token here. It could begin with {token}: the model gives that {percent}, place {rank:,}.",
        word=quoted(word),
        token=quoted(vocabulary[best]),
        percent=percent(float(prediction.plain[best])),
        rank=prediction.rank(best),
    )
