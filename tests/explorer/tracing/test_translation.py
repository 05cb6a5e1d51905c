"""The same text, read by another model."""

from types import SimpleNamespace

import pytest

from explorer.state.run import MOST_TOKENS, Run
from explorer.tracing.runs import Runs
from explorer.tracing.translation import translated
from model.checkpoint import load_checkpoint
from model.pretrained.tokenizer_files import read_tokenizer_json
from model.tokenizer import Tokenizer
from tests.model.pretrained.tokenizer_kinds import tokenizer_of
from tests.specimens import STORIES


@pytest.fixture(scope="module")
def of_bytes() -> Tokenizer:
    """A tokenizer that merges nothing."""
    return Tokenizer({bytes([byte]): byte for byte in range(256)})


@pytest.mark.parametrize("text", ["", " the fox asked\n", "שלום 🌙 é", "<|endoftext|>"])
def test_a_text_is_the_same_in_other_tokens(tiny_tokenizer, of_bytes, text):
    there = translated(tiny_tokenizer.encode(text), tiny_tokenizer, of_bytes)
    assert of_bytes.decode(there) == text
    assert list(translated(there, of_bytes, tiny_tokenizer)) == tiny_tokenizer.encode(text)


def test_the_end_of_a_text_stays_its_end(tiny_tokenizer, of_bytes):
    ids = [*tiny_tokenizer.encode(" the end"), tiny_tokenizer.end_of_text, *tiny_tokenizer.encode("A fox")]
    there = translated(ids, tiny_tokenizer, of_bytes)
    assert there == (*b" the end", of_bytes.end_of_text, *b"A fox")


def test_what_is_no_text_ends_it(tiny_tokenizer, of_bytes):
    moon = "🌙".encode()
    assert translated((*b"a moon ", *moon, *moon[:2]), of_bytes, tiny_tokenizer) == tuple(
        tiny_tokenizer.encode("a moon 🌙")
    )
    broken = (*b"a", *moon[:2], of_bytes.end_of_text, *b"b")
    assert translated(broken, of_bytes, tiny_tokenizer) == tuple(tiny_tokenizer.encode("a"))


def test_no_more_than_fits_into_a_link(tiny_tokenizer, of_bytes):
    assert len(translated(b"x" * 3000, of_bytes, tiny_tokenizer)) <= MOST_TOKENS


@pytest.fixture(scope="module")
def marked():
    """One that puts a space and <s> before a text."""
    return load_checkpoint(STORIES)[1]


def test_what_a_model_expects_before_a_text_is_its_own(tiny_tokenizer, marked):
    own = tiny_tokenizer.encode("A fox")
    there = translated(own, tiny_tokenizer, marked)
    assert there == (*marked.beginning, *marked.encode("A fox"))
    assert list(translated(there, marked, tiny_tokenizer)) == own
    assert translated(there, marked, marked) == there
    begun_otherwise = translated(there[1:], marked, marked)  # its visitor left it out
    assert begun_otherwise == there[1:]


def test_a_continuation_has_no_beginning_and_no_space_of_its_own(tiny_tokenizer, marked):
    for text in (" went on", "x and"):
        there = translated(tiny_tokenizer.encode(text), tiny_tokenizer, marked, goes_on=True)
        assert b"".join(map(marked.token_bytes, there)) == text.encode()
        assert list(translated(there, marked, tiny_tokenizer, goes_on=True)) == tiny_tokenizer.encode(text)


def test_special_tokens_that_end_no_text_are_left_out(tiny_tokenizer, marked):
    unknown = marked.special_tokens["<unk>"]
    ids = (*marked.encode("A fox"), unknown, *marked.encode_continuation(" ran"))
    assert list(translated(ids, marked, tiny_tokenizer)) == tiny_tokenizer.encode("A fox ran")


@pytest.fixture(
    scope="module", params=["BPE of words", "BPE, </w>", "WordPiece", "Llama 2", "byte-level, a space before"]
)
def of_words(request, tmp_path_factory):
    """One whose decoder puts spaces between tokens, or takes one away at an end."""
    path = tmp_path_factory.mktemp("of_words") / "tokenizer.json"
    path.write_text(tokenizer_of(request.param))
    return read_tokenizer_json(path, 500, [])


def test_what_goes_on_from_a_text_is_joined_to_it(of_words, of_bytes):
    whole = of_words.encode("there was a fox who wanted the moon")
    for cut in range(1, len(whole)):
        prompt, generated = whole[:cut], whole[cut:]
        runs = Runs(SimpleNamespace(model=lambda name: (None, of_words)))
        texts = runs.text(Run("of words", tuple(prompt), tuple(generated)))
        assert "".join(texts) == of_words.decode(whole)
        there = translated(prompt, of_words, of_bytes)
        written = translated(generated, of_words, of_bytes, goes_on=True, before=prompt)
        assert (of_bytes.decode(there), of_bytes.decode(written)) == texts
