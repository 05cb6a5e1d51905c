"""`python -m explorer.diagnose file.py:Class`: report where a module differs from the reference."""

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from explorer.diagnosis.constructor import SIZE_BY_ALIAS
from explorer.diagnosis.diagnose import diagnose, infer_config
from explorer.diagnosis.load_module import load_own_module
from explorer.diagnosis.match_weights import Table
from explorer.diagnosis.report_text import format_report
from explorer.diagnosis.vocabulary import read_vocabulary
from explorer.errors import UserError
from explorer.translations import _
from model.config import ModelConfig
from model.errors import ModelError

EQUAL, DIFFERENT, FAILED = 0, 1, 2  # what the command ends with


def add_arguments(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, descriptions: Mapping[str, str] | None = None
) -> None:
    """Add the options that say what is loaded besides "file.py:Class": weights, tokenizer, config, names.

    Args:
        descriptions: by their names, in place of the long ones.
    """
    weights = _(
        "the module’s weights: a file or folder written by torch.save or safetensors, such as a training checkpoint"
    )
    tokenizer = _(
        "the module’s vocabulary: vocab.json with merges.txt in the same folder, tokenizer.json, "
        "tokenizer.model, a tiktoken file, nanoGPT’s meta.pkl, a text or JSON list of tokens; or the name of a "
        "tiktoken encoding, such as gpt2"
    )
    config = _(
        "arguments of the module’s constructor, and settings of the reference model, such as num_heads=8 or "
        "norm_eps=1e-6"
    )
    names = _(
        'JSON file that maps the module’s weight names to ours, as in {"layers.*.wq": "blocks.*.attn.q_proj"}; '
        "only needed for names that no known naming scheme has"
    )
    texts = {"weights": weights, "tokenizer": tokenizer, "config": config, "names": names, **(descriptions or {})}
    parser.add_argument("--weights", metavar="FILE", help=texts["weights"])
    parser.add_argument("--tokenizer", metavar="PATH", help=texts["tokenizer"])
    parser.add_argument("--config", metavar="NAME=VALUE", nargs="+", default=[], help=texts["config"])
    parser.add_argument("--names", metavar="FILE", help=texts["names"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m explorer.diagnose",
        description=_(
            "Find the first difference between your TransformerLM and the reference model with the same weights, and "
            "its likely cause. This executes the file: use only code that you trust."
        ),
    )
    parser.add_argument("module", metavar="FILE.py:CLASS", help=_("the class, or a function that returns the module"))
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        settings, names = parse_settings(options.config), load_name_table(options.names)
        own_module = load_own_module(options.module, options.weights, settings)
        config = reference_config(own_module.module, own_module.sizes | settings, names)
        tokenizer = read_vocabulary(options.tokenizer, config.vocab_size) if options.tokenizer else None
        report = diagnose(own_module.module, config, names)
        report = replace(report, notes=(*report.notes, *own_module.notes, *_token_texts(report.token_ids, tokenizer)))
    except (UserError, ModelError) as error:
        print(_("error: {why}", why=error), file=sys.stderr)
        return FAILED
    print(format_report(report))
    return EQUAL if report.is_equal else DIFFERENT


def _token_texts(token_ids: Sequence[int], tokenizer: Any) -> Iterator[str]:
    """Yield a note with the texts of the tokens read, if the module has a vocabulary."""
    if tokenizer is not None:
        texts = " ".join(repr(tokenizer.token_text(token_id)) for token_id in token_ids)
        yield _("Input tokens of both models, by the vocabulary: {texts}.", texts=texts)


def reference_config(module: nn.Module, settings: Mapping[str, Any], names: Table | None) -> ModelConfig:
    """Return the config inferred from the module's weights and attributes; `settings` take precedence."""
    config_fields = {field.name for field in fields(ModelConfig)}
    values = {SIZE_BY_ALIAS.get(name, name): value for name, value in settings.items()}
    values |= settings
    return infer_config(module, names, {name: value for name, value in values.items() if name in config_fields})


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs with Python literals; UserError without "="."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(_("--config takes NAME=VALUE, got {got!r}.", got=pair))
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings


def load_name_table(file: str | None) -> dict[str, Any] | None:
    """Load a JSON object of weight names; UserError if the file holds no such object."""
    if file is None:
        return None
    try:
        table = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(_("{file} is not a JSON object of weight names: {why}", file=file, why=error)) from None
    if not isinstance(table, dict):
        raise UserError(_("{file} is not a JSON object of weight names: {why}", file=file, why=type(table).__name__))
    return {name: tuple(our_names) if isinstance(our_names, list) else our_names for name, our_names in table.items()}
