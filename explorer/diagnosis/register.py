"""Register a user's module with the app: our model with its weights, and a diagnosis of the module.

The module is run only here, when the app starts; requests are served from files.
"""

import argparse
import atexit
import logging
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from explorer.diagnosis.command import load_name_table, parse_settings, reference_config
from explorer.diagnosis.constructor import SIZE_BY_ALIAS
from explorer.diagnosis.custom_tokenizer import bytes_tokenizer
from explorer.diagnosis.diagnose import add_missing_gains, diagnose
from explorer.diagnosis.load_module import load_own_module
from explorer.diagnosis.match_weights import match_weights
from explorer.diagnosis.report_text import report_lines
from explorer.diagnosis.run_module import build_with_weights, copy_module
from explorer.diagnosis.vocabulary import read_vocabulary
from explorer.tracing.model_library import ModelLibrary
from explorer.translations import N_
from model.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig
from model.errors import LoadingNote
from model.tokenizer import Tokenizer

LOG = logging.getLogger(__name__)


def register_own_module(options: argparse.Namespace, library: ModelLibrary) -> str:
    """Register the module that the command line names, and return its name in the library.

    Args:
        options: `module`, and those of `explorer.diagnosis.command.add_arguments`.

    Raises:
        UserError: see `diagnose`; or the vocabulary is not the model's.
        CheckpointError: a checkpoint has the name already.
    """
    settings, names = parse_settings(options.config), load_name_table(options.names)
    arguments = dict(settings)
    if not options.weights and "vocab_size" not in map(SIZE_BY_ALIAS.get, settings):
        arguments["vocab_size"] = load_checkpoint(options.checkpoint)[1].vocab_size
    own_module = load_own_module(options.module, options.weights, arguments)
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
    checkpoint_path = folder / options.module.rpartition(":")[2]
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
