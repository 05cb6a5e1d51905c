import json
from dataclasses import fields
from pathlib import Path

import pytest

from model.config import ModelConfig
from model.layers.positions import RopeScaling
from model.training.options import MODEL_OPTIONS, OPTIONS, TrainingOptions, parse_options
from tests.subtest_loops import subtest_each

REQUIRED_ARGUMENTS = ["--train", "a.txt", "--validation", "b.txt", "--out", "name"]


def test_missing_options_have_defaults():
    assert parse_options(REQUIRED_ARGUMENTS) == TrainingOptions(
        train=Path("a.txt"), validation=Path("b.txt"), out="name"
    )


def test_flags_are_converted_to_field_types():
    flags = ["--steps", "7", "--tokenizer", "t.tiktoken", "--compile", "--precision", "float32", "--patience", "3"]
    options = parse_options(REQUIRED_ARGUMENTS + flags)
    assert (options.steps, options.tokenizer, options.patience) == (7, Path("t.tiktoken"), 3)
    assert options.compile is True
    assert options.precision == "float32"


def test_default_model_has_style_and_usual_size():
    twins = [parse_options([*REQUIRED_ARGUMENTS, "--style", style]).model_config(4096) for style in ("llama", "gpt")]
    sizes = {"vocab_size": 4096, "context_length": 256, "d_model": 192, "num_layers": 6, "num_heads": 6}
    shared = sizes | {"dropout": 0.1, "tie_embeddings": True}
    assert twins == [ModelConfig.llama_style(**shared), ModelConfig.gpt_style(**shared)]


def test_model_flags_override_style():
    flags = ["--dropout", "0", "--no-tie-embeddings", "--num-kv-heads", "2", "--norm", "layernorm", "--bias"]
    flags += ["--rope-scaling", '{"kind": "linear", "factor": 4}']
    config = parse_options(REQUIRED_ARGUMENTS + flags).model_config(300)
    assert (config.dropout, config.tie_embeddings, config.num_kv_heads) == (0.0, False, 2)
    assert (config.norm, config.bias, config.ffn) == ("layernorm", True, "swiglu")
    assert config.rope_scaling == RopeScaling(kind="linear", factor=4)


def test_config_file_matches_flags_and_flags_override_it(tmp_path):
    values = {"train": "a.txt", "validation": "b.txt", "out": "name", "steps": 7, "style": "gpt", "compile": True}
    values |= {"d_model": 64, "tie_embeddings": False, "tokenizer": None, "learning_rate": 1e-3}
    values |= {"rope_scaling": {"kind": "ntk", "factor": 2}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    flags = ["--steps", "7", "--style", "gpt", "--compile", "--d-model", "64", "--no-tie-embeddings"]
    flags += ["--learning-rate", "0.001", "--rope-scaling", '{"kind": "ntk", "factor": 2}']
    assert parse_options(["--config", str(path)]) == parse_options(REQUIRED_ARGUMENTS + flags)
    assert parse_options(["--config", str(path), "--steps", "9", "--no-compile"]).steps == 9
    assert parse_options(["--config", str(path), "--no-compile"]).compile is False


@pytest.mark.parametrize(
    ("content", "message"), [("{", "readable JSON file"), ("[1]", "a JSON object of options, got list")]
)
def test_invalid_config_file_is_refused(tmp_path, content, message):
    path = tmp_path / "run.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        parse_options(["--config", str(path)])


def test_unknown_name_in_config_file_is_refused(tmp_path, capsys):
    path = tmp_path / "run.json"
    path.write_text('{"stepps": 7}', encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        parse_options([*REQUIRED_ARGUMENTS, "--config", str(path)])
    assert "unrecognized arguments: --stepps=7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (REQUIRED_ARGUMENTS[2:], "the following arguments are required: --train"),
        ([*REQUIRED_ARGUMENTS, "--steps", "many"], "argument --steps: invalid int value: 'many'"),
        ([*REQUIRED_ARGUMENTS, "--speed", "1"], "unrecognized arguments: --speed"),
        ([*REQUIRED_ARGUMENTS, "--rope-scaling", "4"], "argument --rope-scaling: 4: "),
        (
            [*REQUIRED_ARGUMENTS, "--rope-scaling", '{"kind": "wild", "factor": 2}'],
            "must be one of linear, ntk, llama3, yarn, longrope, got 'wild'",
        ),
    ],
)
def test_invalid_flag_is_reported(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        parse_options(arguments)
    assert message in capsys.readouterr().err


@subtest_each(
    ("option", "value", "message"),
    [
        ("--optimizer", "sgd", "optimizer must be one of adamw, muon, got 'sgd'"),
        ("--precision", "fp16", "precision must be one of float32, bf16, got 'fp16'"),
        ("--steps", "0", "steps must be at least 1, got 0"),
        ("--batch-size", "-1", "batch_size must be at least 1, got -1"),
        ("--evaluate-every", "0", "evaluate_every must be at least 1, got 0"),
        ("--accumulation", "0", "accumulation must be at least 1, got 0"),
        ("--snapshots", "1", "snapshots must be 0 or from 2 to steps \\+ 1, got 1"),
        ("--style", "bert", "style must be one of llama, gpt, got 'bert'"),
        ("--initialisation", "lucky", "initialisation must be one of truncated_normal, xavier, kaiming, gpt2, got"),
    ],
)
def test_invalid_value_is_refused(option, value, message):
    with pytest.raises(ValueError, match=message):
        parse_options([*REQUIRED_ARGUMENTS, option, value])


def test_help_explains_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse_options(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name, field in (OPTIONS | MODEL_OPTIONS).items():
        assert "--" + name.replace("_", "-") in text
        assert field.metadata["help"][:20] in text


def test_every_model_setting_except_vocab_size_has_flag():
    assert {f.name for f in fields(ModelConfig)} - {"vocab_size"} == MODEL_OPTIONS.keys()
