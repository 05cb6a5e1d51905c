"""Translation of a text into another model's tokens."""

from types import SimpleNamespace

import pytest

from explorer.state.page_state import MAX_TOKENS, RunRequest
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import retokenize
from model.checkpoint import load_checkpoint
from model.pretrained.tokenizer import read_tokenizer_json
from model.tokenizer import Tokenizer
from tests.model.pretrained.tokenizer_kinds import tokenizer_json
from tests.sample_models import STORIES


@pytest.fixture(scope="module")
def byte_tokenizer() -> Tokenizer:
    """Return a tokenizer without merges."""
    return Tokenizer({bytes([byte]): byte for byte in range(256)})


@pytest.mark.parametrize("text", ["", " the fox asked\n", "שלום 🌙 é", "<|endoftext|>"])
def test_retokenizing_keeps_text(tiny_tokenizer, byte_tokenizer, text):
    there = retokenize(tiny_tokenizer.encode(text), tiny_tokenizer, byte_tokenizer)
    assert byte_tokenizer.decode(there) == text
    assert list(retokenize(there, byte_tokenizer, tiny_tokenizer)) == tiny_tokenizer.encode(text)


def test_end_of_text_token_is_kept(tiny_tokenizer, byte_tokenizer):
    ids = [*tiny_tokenizer.encode(" the end"), tiny_tokenizer.end_of_text, *tiny_tokenizer.encode("A fox")]
    there = retokenize(ids, tiny_tokenizer, byte_tokenizer)
    assert there == (*b" the end", byte_tokenizer.end_of_text, *b"A fox")


def test_invalid_bytes_end_text(tiny_tokenizer, byte_tokenizer):
    moon = "🌙".encode()
    assert retokenize((*b"a moon ", *moon, *moon[:2]), byte_tokenizer, tiny_tokenizer) == tuple(
        tiny_tokenizer.encode("a moon 🌙")
    )
    broken = (*b"a", *moon[:2], byte_tokenizer.end_of_text, *b"b")
    assert retokenize(broken, byte_tokenizer, tiny_tokenizer) == tuple(tiny_tokenizer.encode("a"))


def test_token_count_is_limited(tiny_tokenizer, byte_tokenizer):
    assert len(retokenize(b"x" * 3000, byte_tokenizer, tiny_tokenizer)) <= MAX_TOKENS


@pytest.fixture(scope="module")
def story_tokenizer():
    """Return a tokenizer that prepends a space and <s> to a text."""
    return load_checkpoint(STORIES)[1]


def test_each_model_gets_own_bos_tokens(tiny_tokenizer, story_tokenizer):
    own_ids = tiny_tokenizer.encode("A fox")
    translated = retokenize(own_ids, tiny_tokenizer, story_tokenizer)
    assert translated == (*story_tokenizer.bos_ids, *story_tokenizer.encode("A fox"))
    assert list(retokenize(translated, story_tokenizer, tiny_tokenizer)) == own_ids
    assert retokenize(translated, story_tokenizer, story_tokenizer) == translated
    begun_otherwise = retokenize(translated[1:], story_tokenizer, story_tokenizer)  # the user left out BOS
    assert begun_otherwise == translated[1:]


def test_continuation_gets_no_bos_or_space(tiny_tokenizer, story_tokenizer):
    for text in (" went on", "x and"):
        there = retokenize(tiny_tokenizer.encode(text), tiny_tokenizer, story_tokenizer, is_continuation=True)
        assert b"".join(map(story_tokenizer.token_bytes, there)) == text.encode()
        assert list(retokenize(there, story_tokenizer, tiny_tokenizer, is_continuation=True)) == tiny_tokenizer.encode(
            text
        )


def test_other_special_tokens_are_dropped(tiny_tokenizer, story_tokenizer):
    unknown = story_tokenizer.special_tokens["<unk>"]
    ids = (*story_tokenizer.encode("A fox"), unknown, *story_tokenizer.encode_continuation(" ran"))
    assert list(retokenize(ids, story_tokenizer, tiny_tokenizer)) == tiny_tokenizer.encode("A fox ran")


@pytest.fixture(
    scope="module", params=["BPE of words", "BPE, </w>", "WordPiece", "Llama 2", "byte-level, a space before"]
)
def spacing_tokenizer(request, tmp_path_factory):
    """Return a tokenizer whose decoder inserts spaces between tokens or strips one at an end."""
    path = tmp_path_factory.mktemp("of_words") / "tokenizer.json"
    path.write_text(tokenizer_json(request.param))
    return read_tokenizer_json(path, 500, [])


def test_continuation_joins_its_prompt(spacing_tokenizer, byte_tokenizer):
    whole = spacing_tokenizer.encode("there was a fox who wanted the moon")
    for cut in range(1, len(whole)):
        prompt, generated = whole[:cut], whole[cut:]
        runs = RunService(SimpleNamespace(model=lambda name: (None, spacing_tokenizer)))
        texts = runs.text(RunRequest("of words", tuple(prompt), tuple(generated)))
        assert "".join(texts) == spacing_tokenizer.decode(whole)
        translated_prompt = retokenize(prompt, spacing_tokenizer, byte_tokenizer)
        translated_continuation = retokenize(
            generated, spacing_tokenizer, byte_tokenizer, is_continuation=True, previous_ids=prompt
        )
        assert (byte_tokenizer.decode(translated_prompt), byte_tokenizer.decode(translated_continuation)) == texts
