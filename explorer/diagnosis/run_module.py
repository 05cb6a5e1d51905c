"""Run a user's module; exceptions in it become `UserError`."""

import contextlib
import copy
import re
import traceback
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from explorer.errors import UserError
from explorer.translations import _

TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
STANDARD_LIBRARY = Path(contextlib.__file__).parent  # Python's standard library


def copy_module(module: nn.Module) -> nn.Module:
    """Return a copy in float32 on the CPU and in eval mode, without gradients.

    Raises:
        UserError: it cannot be copied, or is no module.
    """
    if not isinstance(module, nn.Module):
        raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
    with raising_user_error(_("The module cannot be copied")):
        return copy.deepcopy(module).to("cpu").float().eval().requires_grad_(False)


def run_module(module: nn.Module, token_ids: Sequence[int], vocab_size: int) -> Tensor:
    """Return the logits (T, V) in float32; the module may return a tensor, a tuple, or an object with `.logits`.

    Raises:
        UserError: the module fails, or its output is no logits of every token.
    """
    with torch.no_grad(), raising_user_error(_("The module fails on {count} tokens", count=len(token_ids))):
        output = module(torch.tensor([list(token_ids)]))
    output = getattr(output, "logits", output)
    output = output[0] if isinstance(output, tuple | list) else output
    expected_shape = len(token_ids), vocab_size
    if not isinstance(output, Tensor):
        raise UserError(_("The module gives {got} in the place of logits.", got=type(output).__name__))
    if tuple(output.shape) == (1, 1, vocab_size) and len(token_ids) > 1:
        output = _logits_by_prefix(module, token_ids)
    if output.numel() != expected_shape[0] * expected_shape[1]:
        raise UserError(
            _(
                "The module gives {got} for {count} tokens, where logits are (1, {count}, {size}).",
                got=tuple(output.shape),
                count=len(token_ids),
                size=vocab_size,
            )
        )
    return output.detach().float().reshape(expected_shape)


def _logits_by_prefix(module: nn.Module, token_ids: Sequence[int]) -> Tensor:
    """Return the logits of a module that returns only the last token's, as nanoGPT without targets does."""
    rows = []
    for end in range(1, len(token_ids) + 1):
        output = module(torch.tensor([list(token_ids[:end])]))
        output = getattr(output, "logits", output)
        rows.append((output[0] if isinstance(output, tuple | list) else output)[0, -1])
    return torch.stack(rows)


@contextmanager
def raising_user_error(description: str):
    """Context manager: raise exceptions of a user's code as a `UserError` that begins with `description`."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # anything can be raised by code that is not ours
        texts = f"{description}: {type(error).__name__}: {first_line(error)}", error_location(error)
        raise UserError(" ".join(filter(None, texts))) from error


def error_location(error: BaseException) -> str:
    """Return the file and line in the user's code where an error was raised; "" where unknown."""
    own_folder = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((own_folder, "<"))
    ]
    if not frames or STANDARD_LIBRARY in Path(frames[-1].filename).parents:
        return ""
    return _("({file}, line {line})", file=Path(frames[-1].filename).name, line=frames[-1].lineno)


def first_line(error: Any) -> str:
    """Return the first line of a text, without terminal colour codes, up to 200 characters."""
    return (TERMINAL_CODES.sub("", str(error)).strip().splitlines() or [""])[0][:200]
