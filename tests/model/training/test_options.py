from dataclasses import fields
from pathlib import Path

import pytest

from model.training.options import TrainingOptions, parse_options

NEEDED = ["--train", "a.txt", "--validation", "b.txt", "--out", "name"]


def test_what_is_not_given_has_its_default():
    assert parse_options(NEEDED) == TrainingOptions(train=Path("a.txt"), validation=Path("b.txt"), out="name")


def test_flags_have_the_types_of_their_fields():
    given = ["--steps", "7", "--dropout", "0", "--tokenizer", "t.tiktoken", "--compile", "--precision", "float32"]
    options = parse_options(NEEDED + given)
    assert (options.steps, options.dropout, options.tokenizer) == (7, 0.0, Path("t.tiktoken"))
    assert options.compile is True
    assert options.precision == "float32"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (NEEDED[2:], "the following arguments are required: --train"),
        ([*NEEDED, "--steps", "many"], "argument --steps: invalid int value: 'many'"),
        ([*NEEDED, "--speed", "1"], "unrecognized arguments: --speed"),
    ],
)
def test_a_wrong_flag_ends_with_a_message(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        parse_options(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--optimizer", "sgd", "optimizer must be one of adamw, muon, got 'sgd'"),
        ("--precision", "fp16", "precision must be one of float32, bf16, got 'fp16'"),
        ("--steps", "0", "steps must be at least 1, got 0"),
        ("--batch-size", "-1", "batch_size must be at least 1, got -1"),
        ("--evaluate-every", "0", "evaluate_every must be at least 1, got 0"),
    ],
)
def test_a_value_out_of_range_is_refused(option, value, message):
    with pytest.raises(ValueError, match=message):
        parse_options([*NEEDED, option, value])


def test_help_explains_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse_options(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for field in fields(TrainingOptions):
        assert "--" + field.name.replace("_", "-") in text
        assert field.metadata["help"][:20] in text
