"""Command lines about a user's module: `python -m explorer.diagnose file.py:Class`, and the app's `--module`.

The app runs the module only here, when it starts: it registers our model with the module's weights, and the diagnosis.
Requests are served from files.
"""

import argparse
import ast
import atexit
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from explorer.diagnosis.custom_tokenizer import bytes_tokenizer
from explorer.diagnosis.diagnose import add_missing_gains, diagnose, infer_config
from explorer.diagnosis.load_module import load_user_module
from explorer.diagnosis.match_weights import Table, match_weights
from explorer.diagnosis.module_settings import SIZE_BY_ALIAS
from explorer.diagnosis.report_text import format_report, report_lines
from explorer.diagnosis.run_module import build_with_weights, copy_module
from explorer.diagnosis.vocabulary import read_vocabulary
from explorer.errors import UserError
from explorer.tracing.model_library import ModelLibrary
from explorer.translations import N_, _
from model.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig
from model.errors import LoadingNote, ModelError
from model.tokenizer import Tokenizer

EQUAL, DIFFERENT, FAILED = 0, 1, 2  # what the command ends with


def add_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options that say what is loaded besides "file.py:Class"; docs/your-module.md says more of each."""
    parser.add_argument("--weights", metavar="FILE", help="the module's weights: a file or folder")
    parser.add_argument("--tokenizer", metavar="PATH", help="the module's vocabulary: a file, or its name")
    parser.add_argument(
        "--config", metavar="NAME=VALUE", nargs="+", default=[], help="arguments of the module and of the reference"
    )
    parser.add_argument("--names", metavar="FILE", help="JSON file: the module's weight names to ours")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m explorer.diagnose",
        description=_(
            "Find the first difference between your TransformerLM and the reference model with the same weights, and "
            "its likely cause. This executes the file: use only code that you trust."
        ),
        epilog="More on each: docs/your-module.md.",
    )
    parser.add_argument(
        "module", metavar="FILE_OR_FOLDER[:CLASS]", help=_("the class, or a function that returns the module")
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        settings, names = parse_settings(options.config), load_name_table(options.names)
        own_module = load_user_module(options.module, options.weights, settings)
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


LOG = logging.getLogger(__name__)


def register_user_module(options: argparse.Namespace, library: ModelLibrary) -> str:
    """Register the module that the command line names, and return its name in the library.

    Args:
        options: `module`, and those of `explorer.diagnosis.command_line.add_arguments`.

    Raises:
        UserError: see `diagnose`; or the vocabulary is not the model's.
        CheckpointError: a checkpoint has the name already.
    """
    settings, names = parse_settings(options.config), load_name_table(options.names)
    arguments = dict(settings)
    if not options.weights and "vocab_size" not in map(SIZE_BY_ALIAS.get, settings):
        arguments["vocab_size"] = load_checkpoint(options.checkpoint)[1].vocab_size
    own_module = load_user_module(options.module, options.weights, arguments)
    module, config = own_module.module, reference_config(own_module.module, own_module.sizes | settings, names)
    tokenizer = choose_tokenizer(config, options.checkpoint, options.tokenizer)
    note = _vocabulary_note(tokenizer, options)
    report = diagnose(module, config, names)
    report = replace(report, notes=(*report.notes, *own_module.notes))
    lm = build_with_weights(
        config, add_missing_gains(match_weights(copy_module(module), names), config.norm_placement, draws=False)[0]
    )
    folder = Path(tempfile.mkdtemp(prefix="own-module-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    checkpoint_path = folder / own_module.name
    save_checkpoint(lm, None, checkpoint_path, torch.float32)
    report.save(checkpoint_path)
    name = library.catalog.open(checkpoint_path, tokenizer)
    library.catalog.own_module, library.catalog.own_vocabulary = name, note
    for line in report_lines(report):
        LOG.info("%s", line)
    if note:
        LOG.warning("%s", note)
    return name


def choose_tokenizer(config: ModelConfig, preferred: str, vocabulary: str | None = None) -> Any:
    """Return the tokenizer of a module.

    Without a vocabulary it is that of a local checkpoint with as many tokens, the preferred one first, or else
    bytes.

    Args:
        vocabulary: of the module, see `read_vocabulary`.

    Raises:
        UserError: the vocabulary cannot be read, or is not the model's.
    """
    if vocabulary:
        return read_vocabulary(vocabulary, config.vocab_size)
    for name in (preferred, *list_checkpoints()):
        tokenizer = load_checkpoint(name)[1]
        if isinstance(tokenizer, Tokenizer) and tokenizer.vocab_size == config.vocab_size:
            return tokenizer
    return bytes_tokenizer(config.vocab_size)


def _vocabulary_note(tokenizer: Any, options: argparse.Namespace) -> LoadingNote | None:
    """Return a note for users on the vocabulary; None where there is none."""
    if options.weights and not options.tokenizer and isinstance(tokenizer, Tokenizer):
        return LoadingNote(
            N_("No vocabulary was given (--tokenizer): text is read with that of a model here that has as many tokens")
        )
    return getattr(tokenizer, "note", None)
