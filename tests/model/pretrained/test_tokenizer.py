"""Tokenizers of folders that transformers saved."""

import json
from pathlib import Path

import pytest
import tokenizers

from model.checkpoint import CheckpointError, load_checkpoint
from model.errors import ModelError
from model.pretrained.tokenizer import read_tokenizer, read_tokenizer_json
from tests.hugging_face import transformers
from tests.model.pretrained.tokenizer_kinds import TEXT, tokenizer_json
from tests.subtest_loops import subtest_each


@pytest.mark.parametrize("text", ["the fox", " the fox\n", "é 猫 \t", "<|end|> as text", ""])
def test_text_round_trips_through_token_ids(save_random_model, text):
    _model, folder = save_random_model("GPT-2")
    _lm, tokenizer = load_checkpoint(folder)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
    assert not set(ids) & set(tokenizer.special_tokens.values())
    assert tokenizer.bos_ids == () and len(tokenizer.vocabulary) == tokenizer.vocab_size == 300


def test_added_tokens_of_byte_level_vocabulary_are_text(save_random_model):
    """GPT-NeoX and Phi, for example, have tokens of several spaces."""
    _model, folder = save_random_model("GPT-NeoX")
    hf_tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    hf_tokenizer.add_tokens(["   ", "|||é|||"])
    hf_tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer = load_checkpoint(folder)[1]
    spaces, marked = (hf_tokenizer.token_to_id(text) for text in ("   ", "|||é|||"))
    text = "the   fox |||é|||"
    assert {spaces, marked} <= set(tokenizer.encode(text)) and tokenizer.decode(tokenizer.encode(text)) == text
    assert (tokenizer.vocabulary[spaces], tokenizer.vocabulary[marked]) == ("   ", "|||é|||")
    assert not {spaces, marked} & set(tokenizer.special_tokens.values())


@pytest.mark.parametrize("begins", [True, False])
def test_vocab_and_merges_replace_missing_tokenizer_json(save_random_model, begins):
    _model, folder = save_random_model("GPT-2")
    hf_tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    hf_tokenizer.model.save(str(folder))
    ids = json.loads((folder / "vocab.json").read_text())
    ids["<|end|>"] = 0
    (folder / "vocab.json").write_text(json.dumps(ids))
    end = {"content": "<|end|>", "special": True}
    config = {"bos_token": end, "eos_token": "<|end|>", "unk_token": None, "add_bos_token": begins}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    expected = load_checkpoint(folder)[1]
    (folder / "tokenizer.json").unlink()
    tokenizer = load_checkpoint(folder)[1]
    assert tokenizer.beginning == tokenizer.bos_ids == ((0,) if begins else ())
    assert tokenizer.special_tokens == {"<|end|>": 0}
    for text in ("the fox and the moon", " é 🌙\n\tx", "<|end|>"):
        assert tokenizer.encode(text) == expected.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.fixture
def make_tokenizer_pair(tmp_path):
    """`make_tokenizer_pair(**files)`: tokenizers of us and transformers from vocab.json, merges.txt and more files."""
    hf_tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json("byte-level, Qwen"))
    hf_tokenizer.model.save(str(tmp_path))
    ids = json.loads((tmp_path / "vocab.json").read_text())
    del ids["<|end|>"]
    ids = {piece: token_id - 1 for piece, token_id in ids.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))

    def read(rows: int = 10, **files: dict):
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        transformers_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
        return read_tokenizer(tmp_path, len(ids) + rows, [len(ids)]), transformers_tokenizer, len(ids)

    return read


VOCAB_AND_MERGES_CASES = {
    "Qwen 2.5": lambda n: {
        "config": {"model_type": "qwen2"},
        "tokenizer_config": {
            "tokenizer_class": "Qwen2Tokenizer",
            "add_bos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": {
                str(n + i): {"content": text, "special": i < 2, "normalized": False}
                for i, text in enumerate(["<|endoftext|>", "<|im_start|>", "<tool_call>"])
            },
            "bos_token": None,
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
        },
    },
    "Qwen without any more": lambda n: {"config": {"model_type": "qwen2"}},
    "Qwen 2, added_tokens.json": lambda n: {
        "config": {"model_type": "qwen2"},
        "tokenizer_config": {"tokenizer_class": "Qwen2TokenizerFast"},
        "added_tokens": {"<|endoftext|>": n, "<|im_end|>": n + 1, "<extra>": n + 2},
        "special_tokens_map": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    },
    "OPT": lambda n: {
        "config": {"model_type": "opt"},
        "tokenizer_config": {
            "tokenizer_class": "GPT2Tokenizer",
            "errors": "replace",
            "add_prefix_space": False,
            "add_bos_token": True,
            **dict.fromkeys(("unk_token", "bos_token", "eos_token"), {"content": "</s>", "__type": "AddedToken"}),
            "pad_token": {"content": "<pad>", "lstrip": False, "__type": "AddedToken"},
        },
        "special_tokens_map": {
            **dict.fromkeys(("unk_token", "bos_token", "eos_token"), {"content": "</s>", "lstrip": False}),
            "pad_token": {"content": "<pad>", "lstrip": False},
        },
    },
    "GPT-2 without any more": lambda n: {"config": {"model_type": "gpt2"}},
    "GPT-2, a space before": lambda n: {
        "config": {"model_type": "gpt2"},
        "tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "add_bos_token": True},
    },
    "GPT-Neo, a [PAD] of its own": lambda n: {
        "config": {"model_type": "gpt_neo"},
        "tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 2048},
        "special_tokens_map": {"pad_token": "[PAD]"},
        "added_tokens": {"[PAD]": n},
    },
    "Phi": lambda n: {
        "config": {"model_type": "phi"},
        "tokenizer_config": {"tokenizer_class": "CodeGenTokenizer", "add_prefix_space": False},
        "added_tokens": {"<|endoftext|>": n, "  ": n + 1, "\t\t": n + 2},
    },
    "GPT-NeoX": lambda n: {
        "config": {"model_type": "gpt_neox"},
        "tokenizer_config": {"tokenizer_class": "GPTNeoXTokenizer", "add_prefix_space": False},
    },
}


@subtest_each("name", VOCAB_AND_MERGES_CASES)
def test_vocab_and_merges_match_transformers_class(make_tokenizer_pair, name):
    size = make_tokenizer_pair(config={"model_type": "gpt2"})[-1]
    tokenizer, hf_tokenizer, _size = make_tokenizer_pair(**VOCAB_AND_MERGES_CASES[name](size))
    texts = [
        "said: no.\n\nThe fox (who",
        "\tx = f(x);\n",
        "Once  upon a time",
        "cafe\u0301 1234",
        " \t\tthe  ",
        "DON'T, I'll",
    ]
    for text in texts:
        assert [*tokenizer.bos_ids, *tokenizer.encode(text)] == hf_tokenizer(text).input_ids, text
        assert tokenizer.decode(tokenizer.encode(text)) == hf_tokenizer.decode(
            tokenizer.encode(text), clean_up_tokenization_spaces=False
        )
    assert tokenizer.special_tokens == {
        token.content: token_id for token_id, token in hf_tokenizer.added_tokens_decoder.items() if token.special
    }
    for token, token_id in hf_tokenizer.get_added_vocab().items():
        assert tokenizer.token_text(token_id) == token and set(tokenizer.encode(token)).isdisjoint(
            tokenizer.special_tokens.values()
        )
    few, _theirs, _size = make_tokenizer_pair(1)
    assert max(few.special_tokens.values(), default=0) <= size == few.vocab_size - 1 and few.eos_ids == (size,)


@pytest.mark.parametrize("kind", ["RobertaTokenizer", "CLIPTokenizer", "PreTrainedTokenizerFast", "LlamaTokenizer"])
def test_unsupported_tokenizer_class_is_named(save_random_model, kind):
    _model, folder = save_random_model("GPT-2")
    tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    with pytest.raises(
        CheckpointError, match=rf"vocab.json, merges.txt are a {kind}’s, .*GPT2Tokenizer.*save_pretrained"
    ):
        load_checkpoint(folder)


def test_damaged_vocab_and_merges_are_refused(save_random_model):
    _model, folder = save_random_model("GPT-2")
    (folder / "tokenizer.json").unlink()
    (folder / "merges.txt").write_text("a b\n")
    for content in ("{}", "[1]", "", '{"a": "b"}', '{"a": -1}'):
        (folder / "vocab.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"its vocab.json(, merges.txt cannot be read| is empty)"):
            load_checkpoint(folder)
    vocab = {"a": 0, "b": 1, "ab": 2}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    for config in ({"added_tokens_decoder": {"x": {"content": "y"}}}, {"added_tokens_decoder": {"3": "y"}}):
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        with pytest.raises(CheckpointError, match=r"its vocab.json, merges.txt cannot be read"):
            load_checkpoint(folder)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([], "found –"),
        (["tokenizer.model", "tokenizer_config.json"], "found tokenizer.model, tokenizer_config.json"),
        (["vocab.txt"], "found vocab.txt"),
        (["vocab.json"], "found vocab.json"),
        (["qwen.tiktoken", "merges.txt", "spiece.model"], "found merges.txt, qwen.tiktoken, spiece.model"),
    ],
)
def test_missing_tokenizer_error_lists_files_and_remedy(save_random_model, files, told):
    _model, folder = save_random_model("GPT-2")
    (folder / "tokenizer.json").unlink()
    for name in files:
        (folder / name).write_text("{}")
    message = rf"its tokenizer must be in tokenizer.json or in vocab.json \+ merges.txt, {told}: .*save_pretrained"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def write_changed_tokenizer(kind: str, path: Path, **changes) -> tokenizers.Tokenizer:
    """Write one kind's `tokenizer.json` with changes; return the tokenizer read from it."""
    description = json.loads(tokenizer_json(kind))
    for name, value in changes.items():
        description[name] = description[name] | value if isinstance(value, dict) and description[name] else value
    path.write_text(json.dumps(description))
    return tokenizers.Tokenizer.from_file(str(path))


@subtest_each(
    "kind", ["byte-level", "WordLevel", "WordPiece, BERT", "Unigram", "Llama 2", "BPE, </w>", "BPE, ## goes on"]
)
@subtest_each("stray", [0, 1, 5])
def test_ids_without_embedding_row_are_never_encoded(tmp_path, kind, stray):
    """Cases: Gemma 3's <image_soft_token>, an added [PAD], a vocabulary with additional tokens."""
    hf_tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json(kind))
    size = hf_tokenizer.get_vocab_size() - stray
    hf_tokenizer.add_special_tokens(["<image_soft_token>"])
    hf_tokenizer.add_tokens(["the fox"])
    hf_tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", size, [1, size, size + 9])
    assert tokenizer.eos_ids == (1,) and tokenizer.vocab_size == len(tokenizer.vocabulary) == size
    assert "<image_soft_token>" in str(tokenizer.notes[0]) or stray > 3
    text = f"{TEXT} the fox <image_soft_token>"
    assert max(tokenizer.encode(text)) < size
    assert not stray or max(hf_tokenizer.encode(text).ids) >= size
    smaller = tokenizers.Tokenizer.from_str(tokenizer_json(kind))
    if not stray:
        smaller.encode_special_tokens = True
        assert (
            tokenizer.encode(text) == smaller.encode(text, add_special_tokens=False).ids and not tokenizer.eos_ids[1:]
        )
    assert [tokenizer.token_bytes(i) for i in range(size)] == [
        *read_tokenizer_json(tmp_path / "tokenizer.json", size + stray + 2, [])._all_bytes[:size]
    ]
    with pytest.raises(ValueError, match=f"from 0 to {size - 1}"):
        tokenizer.decode([size])


def test_tokenizer_of_other_model_is_refused(tmp_path):
    hf_tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json("byte-level"))
    hf_tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="the tokenizer has 365 tokens, the model 300"):
        read_tokenizer_json(tmp_path / "tokenizer.json", 300, [])


def test_rows_without_token_are_shown_by_number(tmp_path):
    """An embedding may be padded to a multiple of 64 rows, for example."""
    hf_tokenizer = write_changed_tokenizer("WordLevel", tmp_path / "tokenizer.json")
    size = hf_tokenizer.get_vocab_size()
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", 64 * (size // 64 + 1), [])
    assert (
        tokenizer.vocabulary[size:] == tuple(f"<{i}>" for i in range(size, tokenizer.vocab_size))
        and not tokenizer.notes
    )
    assert tokenizer.decode([size, *tokenizer.encode("the fox"), size + 1]) == "the fox"
    assert tokenizer.token_bytes(size) == b"" and tokenizer.bytes_of_ids[size] == b""


def test_truncation_padding_and_dropout_are_ignored(tmp_path):
    path = tmp_path / "tokenizer.json"
    length = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    fill = {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 2, "pad_type_id": 0}
    fill |= {"pad_token": "[PAD]"}
    write_changed_tokenizer("BPE of words", path, truncation=length, padding=fill, model={"dropout": 0.9})
    tokenizer = read_tokenizer_json(path, 300, [])
    hf_tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json("BPE of words"))
    assert all(tokenizer.encode(text) == hf_tokenizer.encode(text).ids for text in ("the fox", TEXT, TEXT))


@pytest.mark.parametrize("kind", ["byte-level", "WordLevel", "Llama 2"])
def test_lone_surrogate_becomes_replacement_character(tmp_path, kind):
    write_changed_tokenizer(kind, tmp_path / "tokenizer.json")
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", 500, [])
    for text, read in {"ok \ud83d bad": "ok \ufffd bad", "\udc80": "\ufffd", "\ud83d\udc4d": "👍"}.items():
        assert tokenizer.encode(text) == tokenizer.encode(read) and tokenizer.encode_continuation(
            text
        ) == tokenizer.encode_continuation(read)


def test_text_outside_vocabulary_is_refused(tmp_path):
    """The vocabulary has only digits, and no token for unknown text."""
    hf_tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({digit: i for i, digit in enumerate("0123456789+=")})
    )
    hf_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    hf_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="= $A", special_tokens=[("=", 11)])
    hf_tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", 12, [])
    assert tokenizer.encode("1+1=2") == [1, 10, 1, 11, 2] and tokenizer.bos_ids == (11,) and not tokenizer.adds_space
    with pytest.raises(ModelError, match="the tokenizer fails at this text: .*UNK"):
        tokenizer.encode("one")
