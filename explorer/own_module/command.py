"""`python -m explorer.diagnose file.py:Class`: where a module parts from the reference."""

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from explorer.language import _
from explorer.own_module.constructor import SIZE_OF
from explorer.own_module.diagnosing import config_of, diagnose
from explorer.own_module.loading import load_own_module
from explorer.own_module.names import Table
from explorer.own_module.vocabulary import read_vocabulary
from explorer.own_module.words import told
from explorer.state.errors import UserError
from model.config import ModelConfig
from model.errors import ModelError

EQUAL, APART, FAILED = 0, 1, 2  # what the command ends with


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that say what is loaded besides "file.py:Class" itself."""
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help=_("its weights: a file or folder that torch.save or safetensors wrote, as training left it"),
    )
    parser.add_argument(
        "--tokenizer",
        metavar="PATH",
        help=_(
            "its vocabulary: vocab.json with merges.txt beside it, tokenizer.json, tokenizer.model, a tiktoken file, "
            "nanoGPT’s meta.pkl, a text or JSON list of tokens; or an encoding of tiktoken, such as gpt2"
        ),
    )
    parser.add_argument(
        "--config",
        metavar="NAME=VALUE",
        nargs="+",
        default=[],
        help=_("arguments of its constructor, and settings of the reference, such as num_heads=8 or norm_eps=1e-6"),
    )
    parser.add_argument(
        "--names",
        metavar="FILE",
        help=_(
            'a JSON table of its names, as in {"layers.*.wq": "blocks.*.attn.q_proj"}, where no known spelling has them'
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m explorer.diagnose",
        description=_(
            "Say where your own TransformerLM parts from the reference with the same weights, and why. The file is "
            "run: name only your own."
        ),
    )
    parser.add_argument("module", metavar="FILE.py:CLASS", help=_("the class, or a function that makes the module"))
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        given, names = settings(options.config), table(options.names)
        own = load_own_module(options.module, options.weights, given)
        config = reference_of(own.module, own.sizes | given, names)
        tokenizer = read_vocabulary(options.tokenizer, config.vocab_size) if options.tokenizer else None
        report = diagnose(own.module, config, names)
        report = replace(report, notes=(*report.notes, *own.notes, *_texts(report.token_ids, tokenizer)))
    except (UserError, ModelError) as error:
        print(_("error: {why}", why=error), file=sys.stderr)
        return FAILED
    print(told(report))
    return EQUAL if report.is_equal else APART


def _texts(token_ids: Sequence[int], tokenizer: Any) -> Iterator[str]:
    """What the tokens that were read are in the module's own vocabulary."""
    if tokenizer is not None:
        texts = " ".join(repr(tokenizer.token_text(token_id)) for token_id in token_ids)
        yield _("The tokens that both read, by the vocabulary: {texts}.", texts=texts)


def reference_of(module: nn.Module, given: Mapping[str, Any], names: Table | None) -> ModelConfig:
    """What the module is to be: what its weights and attributes say, and above all what is given."""
    known = {field.name for field in fields(ModelConfig)}
    said = {SIZE_OF.get(name, name): value for name, value in given.items()}
    said |= given
    return config_of(module, names, {name: value for name, value in said.items() if name in known})


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(_("--config takes NAME=VALUE, got {got!r}.", got=pair))
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def table(file: str | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(_("{file} holds no table of names: {why}", file=file, why=error)) from None
    if not isinstance(found, dict):
        raise UserError(_("{file} holds no table of names: {why}", file=file, why=type(found).__name__))
    return {name: tuple(ours) if isinstance(ours, list) else ours for name, ours in found.items()}
