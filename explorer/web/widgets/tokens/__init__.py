"""The text and how it goes on: a conversation, tokens, what was written, continuations, and a guess."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorer.analysis.next_token import SHADES, NextTokenDistribution
from explorer.explain.notation import format_number
from explorer.lessons.example_prompts import GUESS_EXAMPLES
from explorer.state.page_state import Branches as SavedBranches
from explorer.state.page_state import Path, TreeSegment
from explorer.translations import N_, _, translate
from explorer.web.widgets import HtmlWidget, escape_text, fill_template
from explorer.web.widgets.next_token import pack_ranked_token

CHAT_HTML = """<div class="chat">
<div class="how" role="group" aria-label="{how}">
<button type="button" data-written="chat" aria-pressed="false" title="{chat_is}">{chat}</button>
<button type="button" data-written="text" aria-pressed="true" title="{text_is}">{text}</button>
</div>
<form hidden>
<div class="turns"></div>
<p class="reply" hidden></p>
<div class="buttons"><button type="button" class="add">{add}</button><button type="submit">{run}</button></div>
</form>
</div>"""


class ChatForm(HtmlWidget):
    """Switch between a text and a conversation, and the messages of the conversation; of chat models alone.

    A conversation is run as the model's chat template writes it. The messages are the state's `chat`.
    """

    kind = "chat_form"

    def __init__(self, **kwargs):
        html = fill_template(
            CHAT_HTML,
            how=_("how the prompt is written"),
            chat=_("Chat"),
            chat_is=_("messages, written as the model’s chat template says"),
            text=_("Text"),
            text_is=_("plain text, which the model continues"),
            add=_("Add a turn"),
            run=_("Run"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(messages: Sequence[Mapping[str, str]], reply: str) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            messages: those of the prompt; none if it is a text.
            reply: text that was generated after them.
        """
        return {"messages": list(messages), "reply": reply if messages else ""}


class TokenStrip(HtmlWidget):
    """Tokens as chips, shaded by a quantity chosen from a list; a click or the arrow keys select one as the query.

    Args:
        run: "a" or "b". With two runs, both are shaded by the difference of their surprisals.
    """

    kind = "token_strip"

    def __init__(self, run: str = "a", **kwargs):
        options = "".join(
            f'<option value="{name}">{escape_text(translate(shade.description))}</option>'
            for name, shade in SHADES.items()
        )
        html = fill_template(
            f'<div class="tokens" data-run="{run}">'
            '<div class="strip" role="listbox" aria-label="{tokens}" '
            'aria-orientation="horizontal"></div><label>{colour} <select>',
            tokens=_("Tokens of the prompt and of its continuation") if run == "a" else _("Tokens of B"),
            colour=_("colour"),
        )
        meaning = fill_template(  # with two runs
            '<span class="meaning"><span><i></i> {meaning}</span></span>',
            meaning=_("surprises A more") if run == "a" else _("surprises B more"),
        )
        parts = fill_template(
            '<p class="parts" hidden>{told}</p>',
            told=_("\\x and two digits stand for a byte: a part of a character that takes several tokens."),
        )
        legend = '<p class="roles" hidden></p>'
        begun = fill_template(
            '<label class="beginning" title="{told}" hidden><input type="checkbox"> <span></span></label>',
            told=_("This model’s tokenizer puts it before every text; without it the model may continue differently."),
        )
        super().__init__(html=f"{html}{options}</select></label>{meaning}{begun}{legend}{parts}</div>", **kwargs)

    @staticmethod
    def pack(
        tokens: Sequence[str],
        shades: Mapping[str, tuple[np.ndarray, list[str]]],
        num_prompt: int,
        earlier: int,
        beginning: tuple[str, bool] = ("", False),
        roles: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            tokens: texts of the tokens that the model sees.
            shades: name -> fraction of the full colour (T,), 0 to 1, or -1 to 1 if it is signed, and each number as
                text; with one shading there is no list.
            num_prompt: how many of them belong to the prompt; the others were generated.
            earlier: number of tokens before these that the model does not see.
            beginning: BOS text, "" for none, and whether the prompt begins with it.
            roles: of each token in a conversation, see `token_roles`; none for a text.
        """
        packed = {
            name: {"shares": np.round(shares, 3).tolist(), "words": words} for name, (shares, words) in shades.items()
        }
        return {
            "tokens": list(tokens),
            "shades": packed,
            "num_prompt": num_prompt,
            "earlier": earlier,
            "beginning": list(beginning),
        } | ({"roles": list(roles)} if roles else {})


MAX_CHARACTERS = 60  # characters of the text


def prompt_tail_html() -> str:
    """Return the markup of the strip's end."""
    return fill_template(
        """<button type="button" class="brief" title="{to_prompt}"></button>""",
        to_prompt=_("to the prompt"),
    )


class NextTokenPreview(HtmlWidget):
    """The end of the text and the token that Step would generate; a click goes to the prompt."""

    kind = "brief"

    def __init__(self, **kwargs):
        super().__init__(html=prompt_tail_html(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], sampled_token: str, probability: float) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            tokens: the text up to the selected token.
            sampled_token, probability: the token sampled after it, and its probability.
        """
        return {
            "text": "".join(tokens)[-MAX_CHARACTERS:],
            "next": sampled_token,
            "probability": float(probability),
        }


class GeneratedText(HtmlWidget):
    """The end of the prompt, the generated text, and whether the model ended it. A click on a word explains it.

    Its value is {"prompt": str, "generated": str, "ended": str}, with the generated "tokens" that the model sees, and
    the "position" of the first.
    """

    kind = "story"

    def __init__(self, **kwargs):
        html = '<div class="story" dir="auto"><span class="prompt"></span><span class="generated"></span>'
        html += '<p class="ended" role="status"></p></div>'
        super().__init__(html=html, **kwargs)


def generation_player_html() -> str:
    """Return the markup of the playback's buttons."""
    return fill_template(
        """<div class="playback" role="group" aria-label="{playback}">
  <button type="button" class="back" title="{one_back}" aria-label="{back}">◀</button>
  <button type="button" class="play" title="{play_is}" aria-label="{play}">{play_shown}</button>
  <button type="button" class="forward" title="{one_forward}" aria-label="{forward}">▶</button>
  <input type="range" min="0" aria-label="{step}">
</div>
<output class="told" aria-live="off"></output>""",
        playback=_("Playback of the continuation"),
        one_back=_("one step back"),
        back=_("back"),
        play_is=_("play, two steps a second"),
        play=_("play"),
        play_shown=_("Play"),
        one_forward=_("one step forward"),
        forward=_("forward"),
        step=_("step of the continuation"),
    )


class GenerationPlayer(HtmlWidget):
    """Selects the tokens before each generated one, one by one, so that all views replay the generation."""

    kind = "playback"

    def __init__(self, **kwargs):
        super().__init__(html=generation_player_html(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], num_prompt: int, num_generated: int) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            tokens: texts of the tokens that the model sees.
            num_prompt: how many of them belong to the prompt.
            num_generated: number of generated tokens, including those that the model no longer sees.
        """
        first = max(0, num_prompt - 1)  # after it the first token was chosen whose choice can be seen
        visible_tokens = list(tokens[first:])
        return {"first": first, "tokens": visible_tokens, "unseen": num_generated - len(visible_tokens) + 1}


def continuation_tree_html() -> str:
    """Return the markup of the empty tree of continuations."""
    return fill_template(
        """<h3>{heading}</h3>
<p class="legend">{legend}</p>
<ul class="tree" aria-label="{tree}"></ul>
<table class="leaves">
  <caption>{compared}</caption>
  <thead><tr>
    <th scope="col">{branch}</th>
    <th scope="col">{tokens}</th>
    <th scope="col" title="{log_is}">{log}</th>
    <th scope="col" title="{each_is}">{each}</th>
    <th scope="col" title="{perplexity_is}">{perplexity}</th>
  </tr></thead>
  <tbody></tbody>
</table>""",
        heading=_("Continuations"),
        legend=_("The shaded token’s probability, then how likely the whole stretch is. Choose one to go there."),
        tree=_("Continuations of the prompt, as a tree"),
        compared=_("Compared"),
        branch=_("branch"),
        tokens=_("tokens"),
        log=_("log₂ P"),
        log_is=_("logarithm of the probability of the whole branch: less the surprisals of its tokens, in bits"),
        each=_("per token"),
        each_is=_("log₂ P divided by the number of tokens"),
        perplexity=_("perplexity"),
        perplexity_is=_("2 to the power of −log₂ P per token: among how many equally likely tokens each was a choice"),
    )


# how a branch came about -> in words
ORIGINS = {"greedy": N_("greedy"), "beam": N_("beam"), "sampling": N_("sampling")}


class ContinuationTree(HtmlWidget):
    """The tree of continuations: a row per segment of tokens without a fork, and a table of the branches' ends.

    A click on a row goes there; its × deletes the segment and all that follow it.
    """

    kind = "branches"

    def __init__(self, **kwargs):
        super().__init__(html=continuation_tree_html(), **kwargs)

    @staticmethod
    def pack(
        segments: Sequence[TreeSegment], visible_path: Path, branches: SavedBranches, token_text: Callable[[int], str]
    ) -> list[dict[str, Any]]:
        """Return the widget's value.

        Args:
            segments: the tree (`explorer.state.page_state.build_tree`).
            visible_path: the continuation that the page shows.
            branches: with their origins.
            token_text: returns a token id's text.
        """
        rows = []
        for segment in segments:
            token_ids, length = segment.path[segment.start :], len(segment.path)
            origins = [branch.origin for branch in branches if branch.origin and branch.path == segment.path]
            rows.append(
                {
                    "ids": list(token_ids),
                    "tokens": [token_text(token_id) for token_id in token_ids],
                    "parent": segment.parent,
                    "depth": segment.depth,
                    "probability": 2**-segment.first,
                    "first": format_number(2**-segment.first),
                    "bits": format_number(-segment.bits),
                    "each": format_number(-segment.bits / len(token_ids)),
                    "length": length,
                    "total": format_number(-segment.total),
                    "per_token": format_number(-segment.total / length),
                    "perplexity": format_perplexity(segment.total / length),
                    "shown": visible_path[:length] == segment.path,
                    "here": visible_path == segment.path,
                    "compared": segment.is_leaf or bool(origins),
                    "origins": ", ".join(translate(ORIGINS[origin]) for origin in origins),
                }
            )
        return rows


def format_perplexity(bits: float) -> str:
    """Format 2^bits; above 2^1024 a float overflows."""
    return format_number(2**bits) if bits < 1024 else _("over 1e308")


NUM_CANDIDATES = 10  # likeliest tokens, among which the words to choose from are
GUESS_HTML = """<div class="guess">
<form>
  <p>{promise}</p>
  <h2>{ask}</h2>
  <p class="ending" dir="auto"></p>
  <div class="choices" role="group" aria-label="{ask}"></div>
  <label>{own} <input maxlength="40" autocomplete="off" spellcheck="false" placeholder="{placeholder}"></label>
  <button type="submit" class="see">{see}</button>
  <button type="button" class="know">{know}</button>
</form>
<div class="seen" hidden><output></output><p><button type="button" class="again">{again}</button>
<button type="button" class="another" data-texts="{texts}">{another}</button></p></div>
</div>"""


class NextTokenGuessForm(HtmlWidget):
    """Asks which word comes next, then says where the guess is among the model's.

    On a first visit the model's answer is covered until the user has guessed; later it is visible until the user
    guesses again. The user's guess is the state's `guess`.
    """

    kind = "guess"

    def __init__(self, **kwargs):
        html = fill_template(
            GUESS_HTML,
            promise=_("A small language model reads your words and guesses the next one."),
            ask=_("Which word comes next?"),
            own=_("or your own"),
            placeholder=_("a word"),
            see=_("See the model’s guesses"),
            know=_("I know transformers: show me numbers"),
            again=_("Guess again"),
            another=_("Another example"),
            texts=json.dumps(GUESS_EXAMPLES),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        prediction: NextTokenDistribution,
        vocabulary: Sequence[str],
        after: str,
        guess: str = "",
        written: tuple[str, NextTokenDistribution] | None = None,
        is_changed: bool = False,
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            prediction: the distribution that the next token is sampled from.
            vocabulary: text of each token id.
            after: text of the token before.
            guess: a word in any case; "" for none.
            written: the token before a generated one, and its prediction; None for no generated one.
            is_changed: whether the run has interventions.
        """
        best = int(prediction.sampled.argmax())
        return {
            "after": after,
            "candidates": [vocabulary[token_id] for token_id in prediction.top(NUM_CANDIDATES)],
            "likeliest": {"token": vocabulary[best], "sampled": float(prediction.sampled[best])},
            "guess": pack_guess(prediction, vocabulary, guess) if guess.strip() else None,
            "written": pack_written_token(*written, vocabulary, is_changed) if written else None,
        }


def pack_written_token(
    after: str, before: NextTokenDistribution, vocabulary: Sequence[str], is_changed: bool
) -> dict[str, Any]:
    """Return a generated token's own chance and rank, as the settings that sampled it are not known later."""
    return pack_ranked_token(before, vocabulary, before.actual) | {"after": after, "is_changed": is_changed}


def guessed_token(prediction: NextTokenDistribution, vocabulary: Sequence[str], guess: str) -> tuple[int | None, bool]:
    """Return a guess's token, None for none, and whether its text equals the guess.

    It is the likeliest token that equals the word, or else the longest one that the word begins with; of those that
    cannot be sampled one in the same case.
    """
    word, sampled = guess.strip().casefold(), prediction.sampled
    texts = [text.strip().casefold() for text in vocabulary]
    exact_ids = [token_id for token_id, text in enumerate(texts) if text == word]
    candidate_ids = exact_ids or [token_id for token_id, text in enumerate(texts) if text and word.startswith(text)]
    best = max(
        candidate_ids,
        key=lambda token_id: (
            len(texts[token_id]),
            sampled[token_id],
            guess.strip().startswith(vocabulary[token_id].strip()),
            prediction.plain[token_id],
        ),
        default=None,
    )
    return best, bool(exact_ids)


def pack_guess(prediction: NextTokenDistribution, vocabulary: Sequence[str], guess: str) -> dict[str, Any]:
    """Return the guess, and its token with its probability and rank: before any setting if it is cut."""
    token_id, is_exact = guessed_token(prediction, vocabulary, guess)
    if token_id is None:
        return {"text": guess.strip(), "token": None}
    chance = float(prediction.sampled[token_id])
    rank = int((prediction.sampled > chance).sum()) + 1 if chance > 0 else prediction.rank(token_id)
    token = vocabulary[token_id]
    return {"text": guess.strip(), "token": token, "is_exact": is_exact, "sampled": chance, "rank": rank}
