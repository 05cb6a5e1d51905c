"""A module of the owner's, shown by the app: our model with its weights, and beside it how the module differs.

The module is run here, when the app is started, and never again: what visitors ask for is read from files.
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

from explorer.language import N_
from explorer.own_module.command import reference_of, settings, table
from explorer.own_module.constructor import SIZE_OF
from explorer.own_module.diagnosing import diagnose
from explorer.own_module.loading import load_own_module
from explorer.own_module.names import match
from explorer.own_module.own_tokenizer import bytes_tokenizer
from explorer.own_module.preparing import completed
from explorer.own_module.running import own_copy
from explorer.own_module.vocabulary import read_vocabulary
from explorer.own_module.weights import with_weights
from explorer.own_module.words import lines
from explorer.tracing.library import Library
from model.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig
from model.notes import Note
from model.tokenizer import Tokenizer

LOG = logging.getLogger(__name__)


def opened(options: argparse.Namespace, library: Library) -> str:
    """Have the library offer the module that the command line names; the name it has there.

    Args:
        options: `module`, and those of `explorer.own_module.command.add_arguments`.

    Raises:
        UserError: see `diagnose`; or the vocabulary is not the model's.
        CheckpointError: a checkpoint has the name already.
    """
    given, names = settings(options.config), table(options.names)
    made_with = dict(given)
    if not options.weights and "vocab_size" not in map(SIZE_OF.get, given):
        made_with["vocab_size"] = load_checkpoint(options.checkpoint)[1].vocab_size
    own = load_own_module(options.module, options.weights, made_with)
    module, config = own.module, reference_of(own.module, own.sizes | given, names)
    tokenizer = tokenizer_for(config, options.checkpoint, options.tokenizer)
    note = _note_on(tokenizer, options)
    report = diagnose(module, config, names)
    report = replace(report, notes=(*report.notes, *own.notes))
    lm = with_weights(config, completed(match(own_copy(module), names), config.norm_placement, draws=False)[0])
    folder = Path(tempfile.mkdtemp(prefix="own-module-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / options.module.rpartition(":")[2]
    save_checkpoint(lm, None, place, torch.float32)
    report.save(place)
    name = library.offered.open(place)
    library.offered.own_module, library.offered.own_tokenizer = name, tokenizer
    library.offered.own_vocabulary = note
    for line in lines(report):
        LOG.info("%s", line)
    if note:
        LOG.warning("%s", note)
    return name


def tokenizer_for(config: ModelConfig, preferred: str, vocabulary: str | None = None) -> Any:
    """Return the tokenizer of a module.

    Without a vocabulary it is that of a checkpoint here with as many tokens, the preferred one first, or else bytes.

    Args:
        vocabulary: where its own is, see `read_vocabulary`.

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


def _note_on(tokenizer: Any, options: argparse.Namespace) -> Note | None:
    """What users should know of the vocabulary that they read."""
    if options.weights and not options.tokenizer and isinstance(tokenizer, Tokenizer):
        return Note(
            N_("No vocabulary was given (--tokenizer): text is read with that of a model here that has as many tokens")
        )
    return getattr(tokenizer, "note", None)
