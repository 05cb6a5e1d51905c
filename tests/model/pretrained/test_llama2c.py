"""A real llama2.c model loads and generates the same text as `run.c` does."""

import shutil
from pathlib import Path

import pytest

from model.checkpoint import CheckpointError, load_checkpoint
from model.generation.autoregressive import generate
from model.tokenizer import merge_steps
from tests.subtest_loops import subtest_each

FOLDER = Path(__file__).parents[2] / "data" / "stories260K"
MODEL = FOLDER / "stories260K.bin"
FILES = ("stories260K.bin", "tok512.bin")


@pytest.fixture
def files(tmp_path) -> Path:
    for name in FILES:
        shutil.copyfile(FOLDER / name, tmp_path / name)
    return tmp_path / MODEL.name


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.exhaustive
def test_generated_text_matches_llama2c(use_cache):
    lm, tokenizer = load_checkpoint(MODEL)
    ids = [*tokenizer.bos_ids, *tokenizer.encode("Once upon a time")]
    length = 256 if use_cache else 60
    steps = generate(lm, ids, max_new_tokens=length - len(ids), temperature=0, use_cache=use_cache)
    generated = tokenizer.decode([*ids, *(step.token_id for step in steps)])
    expected = (FOLDER / "greedy.txt").read_text(encoding="utf-8")
    assert expected.startswith(generated) and len(generated) >= (len(expected) - 5 if use_cache else 100)


@subtest_each("text", ["", "a", " a", "é", "猫 x\n\ty", "<s> hi </s>", "  two  spaces ", "<0x41>"])
def test_text_round_trips_after_leading_space(text):
    _lm, tokenizer = load_checkpoint(MODEL)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == (f" {text}" if text else "").encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:20], "it has 20 bytes"),
        (lambda content: content[:-4], "should have 1,056,540 bytes by its header, got 1,056,536"),
        (lambda content: b"24ka" + content[4:], "later format of llama2.c"),
        (lambda content: content[:100] + b"\xff" * 4 + content[104:], "not finite"),
        (lambda content: (-5).to_bytes(4, "little", signed=True) + content[4:], "d_model must be a positive integer"),
    ],
)
def test_damaged_model_is_refused(files, change, message):
    files.write_bytes(change(files.read_bytes()))
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(files)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-1], "no tokenizer of llama2.c"),
        (lambda content: content + b"\0" * 9, "more than the 512 tokens"),
        (lambda content: content[:8] + b"\xff" * 4 + content[12:], "no tokenizer of llama2.c"),
    ],
)
def test_damaged_tokenizer_is_refused(files, change, message):
    tokenizer = files.with_name("tok512.bin")
    tokenizer.write_bytes(change(tokenizer.read_bytes()))
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(files)
    assert message in str(error.value)


def test_missing_tokenizer_is_reported(files):
    files.with_name("tok512.bin").unlink()
    with pytest.raises(CheckpointError, match="one tokenizer, tok\\*.bin, is to lie beside"):
        load_checkpoint(files)


def test_merge_rules_build_every_merged_token():
    _lm, tokenizer = load_checkpoint(MODEL)
    rules, built = tokenizer.merge_rules, 0
    for token in tokenizer.bytes_of_ids[259:]:
        if len(rules.initial_pieces(token)) > 1:
            assert merge_steps(token, rules)[-1].pieces == (token,)
            built += 1
    assert built > 100


@pytest.mark.parametrize("text", ["Once upon a time", "the little girl", "she was happy", "é was"])
def test_merge_steps_match_encoding(text):
    _lm, tokenizer = load_checkpoint(MODEL)
    steps = merge_steps(f" {text}".encode(), tokenizer.merge_rules)
    assert steps[-1].pieces == tuple(map(tokenizer.token_bytes, tokenizer.encode(text)))


@pytest.mark.parametrize("text", [" went on", "x, and", "\n", "", "é"])
def test_continuation_has_no_leading_space(text):
    _lm, tokenizer = load_checkpoint(MODEL)
    ids = tokenizer.encode_continuation(text)
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
    assert tokenizer.decode_continuation(ids) == text
