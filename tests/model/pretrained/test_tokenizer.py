"""Tokenizers of folders that transformers saved."""

import json

import pytest
import tokenizers

from model.checkpoint import CheckpointError, load_checkpoint


@pytest.mark.parametrize("text", ["the fox", " the fox\n", "é 猫 \t", "<|end|> as text", ""])
def test_a_text_is_its_tokens(saved, text):
    _model, folder = saved("GPT-2")
    _lm, tokenizer = load_checkpoint(folder)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
    assert not set(ids) & set(tokenizer.special_tokens.values())
    assert tokenizer.beginning == () and len(tokenizer.vocabulary) == tokenizer.vocab_size == 300


def test_what_was_added_to_a_byte_level_vocabulary_is_text(saved):
    """Such as the spaces in rows that GPT-NeoX and Phi have."""
    _model, folder = saved("GPT-NeoX")
    known = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    known.add_tokens(["   ", "|||é|||"])
    known.save(str(folder / "tokenizer.json"))
    tokenizer = load_checkpoint(folder)[1]
    spaces, marked = (known.token_to_id(text) for text in ("   ", "|||é|||"))
    text = "the   fox |||é|||"
    assert {spaces, marked} <= set(tokenizer.encode(text)) and tokenizer.decode(tokenizer.encode(text)) == text
    assert (tokenizer.vocabulary[spaces], tokenizer.vocabulary[marked]) == ("   ", "|||é|||")
    assert not {spaces, marked} & set(tokenizer.special_tokens.values())


@pytest.mark.parametrize("begins", [True, False])
def test_where_there_is_no_tokenizer_json_gpt_2s_two_files_do(saved, begins):
    _model, folder = saved("GPT-2")
    known = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    known.model.save(str(folder))
    ids = json.loads((folder / "vocab.json").read_text())
    ids["<|end|>"] = 0
    (folder / "vocab.json").write_text(json.dumps(ids))
    end = {"content": "<|end|>", "special": True}
    said = {"bos_token": end, "eos_token": "<|end|>", "add_bos_token": begins}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    expected = load_checkpoint(folder)[1]
    (folder / "tokenizer.json").unlink()
    tokenizer = load_checkpoint(folder)[1]
    assert tokenizer.beginning == ((0,) if begins else ())
    assert tokenizer.special_tokens == {"<|end|>": 0}
    for text in ("the fox and the moon", " é 🌙\n\tx", "<|end|>"):
        assert tokenizer.encode(text) == expected.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_half_of_the_two_files_is_told(saved):
    _model, folder = saved("GPT-2")
    (folder / "vocab.json").write_text("{}")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"its merges.txt cannot be read: No such file"):
        load_checkpoint(folder)
    (folder / "merges.txt").write_text("a b\n")
    with pytest.raises(CheckpointError, match=r"its vocab.json, merges.txt cannot be read"):
        load_checkpoint(folder)
