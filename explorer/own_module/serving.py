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

import torch

from explorer.language import _
from explorer.own_module.command import reference_of, settings, table
from explorer.own_module.diagnosing import diagnose
from explorer.own_module.loading import load_own_module
from explorer.own_module.names import match
from explorer.own_module.preparing import completed
from explorer.own_module.running import own_copy
from explorer.own_module.weights import with_weights
from explorer.own_module.words import lines
from explorer.state.errors import UserError
from explorer.tracing.library import Library
from model.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig
from model.tokenizer import END_OF_TEXT, Tokenizer

BYTES = 256
LOG = logging.getLogger(__name__)


def opened(options: argparse.Namespace, library: Library) -> str:
    """Have the library offer the module that the command line names; the name it has there.

    Args:
        options: `module`, and those of `explorer.own_module.command.add_arguments`.

    Raises:
        UserError: see `diagnose`; or no tokenizer has as many tokens.
        CheckpointError: a checkpoint has the name already.
    """
    given, names = settings(options.config), table(options.names)
    if not options.weights:
        given.setdefault("vocab_size", load_checkpoint(options.checkpoint)[1].vocab_size)
    own = load_own_module(options.module, options.weights, given)
    module, config = own.module, reference_of(own.module, own.sizes | given, names)
    tokenizer = tokenizer_for(config, options.checkpoint)
    report = diagnose(module, config, names)
    report = replace(report, notes=(*report.notes, *own.notes))
    lm = with_weights(config, completed(match(own_copy(module), names), config.norm_placement, draws=False)[0])
    folder = Path(tempfile.mkdtemp(prefix="own-module-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / options.module.rpartition(":")[2]
    save_checkpoint(lm, tokenizer, place, torch.float32)
    report.save(place)
    name = library.offered.open(place)
    library.offered.own_module = name
    for line in lines(report):
        LOG.info("%s", line)
    return name


def tokenizer_for(config: ModelConfig, preferred: str) -> Tokenizer:
    """One that has as many tokens as the model: of the checkpoints here, the preferred first; or else one of bytes, and
    of tokens that no text has.

    Raises:
        UserError: there are not even as many tokens as bytes.
    """
    for name in (preferred, *list_checkpoints()):
        tokenizer = load_checkpoint(name)[1]
        if isinstance(tokenizer, Tokenizer) and tokenizer.vocab_size == config.vocab_size:
            return tokenizer
    if config.vocab_size <= BYTES:
        raise UserError(
            _(
                "A vocabulary of {size} tokens is too small for any text: the page needs at least {least}. "
                "`python -m explorer.diagnose` needs none.",
                size=config.vocab_size,
                least=BYTES + 1,
            )
        )
    ranks = {bytes([byte]): byte for byte in range(BYTES)}
    ranks |= {f"<{token}>".encode(): token for token in range(BYTES, config.vocab_size - 1)}
    return Tokenizer(ranks, (END_OF_TEXT,))
