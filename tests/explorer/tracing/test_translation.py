"""Translation of a text into another model's tokens."""

from types import SimpleNamespace

import pytest

from explorer.state.run_request import MAX_TOKENS, RunRequest
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import retokenize
from model.checkpoint import load_checkpoint
from model.pretrained.tokenizer import read_tokenizer_json
from model.tokenizer import Tokenizer
from tests.model.pretrained.tokenizer_kinds import tokenizer_of
from tests.sample_models import STORIES


@pytest.fixture(scope="module")
def of_bytes() -> Tokenizer:
    """Return a tokenizer without merges."""
    return Tokenizer({bytes([byte]): byte for byte in range(256)})


@pytest.mark.parametrize("text", ["", " the fox asked\n", "שלום 🌙 é", "<|endoftext|>"])
def test_a_text_is_the_same_in_other_tokens(tiny_tokenizer, of_bytes, text):
    there = retokenize(tiny_tokenizer.encode(text), tiny_tokenizer, of_bytes)
    assert of_bytes.decode(there) == text
    assert list(retokenize(there, of_bytes, tiny_tokenizer)) == tiny_tokenizer.encode(text)


def test_the_end_of_a_text_stays_its_end(tiny_tokenizer, of_bytes):
    ids = [*tiny_tokenizer.encode(" the end"), tiny_tokenizer.end_of_text, *tiny_tokenizer.encode("A fox")]
    there = retokenize(ids, tiny_tokenizer, of_bytes)
    assert there == (*b" the end", of_bytes.end_of_text, *b"A fox")


def test_what_is_no_text_ends_it(tiny_tokenizer, of_bytes):
    moon = "🌙".encode()
    assert retokenize((*b"a moon ", *moon, *moon[:2]), of_bytes, tiny_tokenizer) == tuple(
        tiny_tokenizer.encode("a moon 🌙")
    )
    broken = (*b"a", *moon[:2], of_bytes.end_of_text, *b"b")
    assert retokenize(broken, of_bytes, tiny_tokenizer) == tuple(tiny_tokenizer.encode("a"))


def test_no_more_than_fits_into_a_link(tiny_tokenizer, of_bytes):
    assert len(retokenize(b"x" * 3000, of_bytes, tiny_tokenizer)) <= MAX_TOKENS


@pytest.fixture(scope="module")
def story_tokenizer():
    """Return a tokenizer that prepends a space and <s> to a text."""
    return load_checkpoint(STORIES)[1]


def test_what_a_model_expects_before_a_text_is_its_own(tiny_tokenizer, story_tokenizer):
    own_ids = tiny_tokenizer.encode("A fox")
    translated = retokenize(own_ids, tiny_tokenizer, story_tokenizer)
    assert translated == (*story_tokenizer.bos_ids, *story_tokenizer.encode("A fox"))
    assert list(retokenize(translated, story_tokenizer, tiny_tokenizer)) == own_ids
    assert retokenize(translated, story_tokenizer, story_tokenizer) == translated
    begun_otherwise = retokenize(translated[1:], story_tokenizer, story_tokenizer)  # its visitor left it out
    assert begun_otherwise == translated[1:]


def test_a_continuation_has_no_beginning_and_no_space_of_its_own(tiny_tokenizer, story_tokenizer):
    for text in (" went on", "x and"):
        there = retokenize(tiny_tokenizer.encode(text), tiny_tokenizer, story_tokenizer, is_continuation=True)
        assert b"".join(map(story_tokenizer.token_bytes, there)) == text.encode()
        assert list(retokenize(there, story_tokenizer, tiny_tokenizer, is_continuation=True)) == tiny_tokenizer.encode(
            text
        )


def test_special_tokens_that_end_no_text_are_left_out(tiny_tokenizer, story_tokenizer):
    unknown = story_tokenizer.special_tokens["<unk>"]
    ids = (*story_tokenizer.encode("A fox"), unknown, *story_tokenizer.encode_continuation(" ran"))
    assert list(retokenize(ids, story_tokenizer, tiny_tokenizer)) == tiny_tokenizer.encode("A fox ran")


@pytest.fixture(
    scope="module", params=["BPE of words", "BPE, </w>", "WordPiece", "Llama 2", "byte-level, a space before"]
)
def of_words(request, tmp_path_factory):
    """Return a tokenizer whose decoder inserts spaces between tokens or strips one at an end."""
    path = tmp_path_factory.mktemp("of_words") / "tokenizer.json"
    path.write_text(tokenizer_of(request.param))
    return read_tokenizer_json(path, 500, [])


def test_what_goes_on_from_a_text_is_joined_to_it(of_words, of_bytes):
    whole = of_words.encode("there was a fox who wanted the moon")
    for cut in range(1, len(whole)):
        prompt, generated = whole[:cut], whole[cut:]
        runs = RunService(SimpleNamespace(model=lambda name: (None, of_words)))
        texts = runs.text(RunRequest("of words", tuple(prompt), tuple(generated)))
        assert "".join(texts) == of_words.decode(whole)
        translated_prompt = retokenize(prompt, of_words, of_bytes)
        translated_continuation = retokenize(generated, of_words, of_bytes, is_continuation=True, previous_ids=prompt)
        assert (of_bytes.decode(translated_prompt), of_bytes.decode(translated_continuation)) == texts
