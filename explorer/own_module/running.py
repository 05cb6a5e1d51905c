"""Another's module, run: whatever goes wrong in it is told in a sentence."""

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

from explorer.language import _
from explorer.state.errors import UserError

TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
LIBRARY = Path(contextlib.__file__).parent  # of Python itself


def own_copy(module: nn.Module) -> nn.Module:
    """A copy in float32 on the CPU and in eval mode, to be changed at will.

    Raises:
        UserError: it cannot be copied, or is no module.
    """
    if not isinstance(module, nn.Module):
        raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
    with told(_("The module cannot be copied")):
        return copy.deepcopy(module).to("cpu").float().eval().requires_grad_(False)


def logits_of(module: nn.Module, token_ids: Sequence[int], vocab_size: int) -> Tensor:
    """(T, V) in float32, whatever the module gives them in: a tensor, a tuple with them first, or `.logits`.

    Raises:
        UserError: the module fails, or what it gives are no logits of every token.
    """
    with torch.no_grad(), told(_("The module fails on {count} tokens", count=len(token_ids))):
        found = module(torch.tensor([list(token_ids)]))
    found = getattr(found, "logits", found)
    found = found[0] if isinstance(found, tuple | list) else found
    wanted = len(token_ids), vocab_size
    if not isinstance(found, Tensor):
        raise UserError(_("The module gives {got} in the place of logits.", got=type(found).__name__))
    if tuple(found.shape) == (1, 1, vocab_size) and len(token_ids) > 1:
        found = _position_by_position(module, token_ids)
    if found.numel() != wanted[0] * wanted[1]:
        raise UserError(
            _(
                "The module gives {got} for {count} tokens, where logits are (1, {count}, {size}).",
                got=tuple(found.shape),
                count=len(token_ids),
                size=vocab_size,
            )
        )
    return found.detach().float().reshape(wanted)


def _position_by_position(module: nn.Module, token_ids: Sequence[int]) -> Tensor:
    """Of a module that gives the last token's logits alone, as nanoGPT's does where no targets are given."""
    rows = []
    for end in range(1, len(token_ids) + 1):
        found = module(torch.tensor([list(token_ids[:end])]))
        found = getattr(found, "logits", found)
        rows.append((found[0] if isinstance(found, tuple | list) else found)[0, -1])
    return torch.stack(rows)


@contextmanager
def told(what: str):
    """Tells what others' code raises as a sentence."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # anything can be raised by code that is not ours
        words = f"{what}: {type(error).__name__}: {first_line(error)}", place_of(error)
        raise UserError(" ".join(filter(None, words))) from error


def place_of(error: BaseException) -> str:
    """Where in others' code it was raised, as far as that is known."""
    ours = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((ours, "<"))
    ]
    if not frames or LIBRARY in Path(frames[-1].filename).parents:
        return ""
    return _("({file}, line {line})", file=Path(frames[-1].filename).name, line=frames[-1].lineno)


def first_line(error: Any) -> str:
    """Return the first line of a text, without the codes that colour it on a terminal."""
    return (TERMINAL_CODES.sub("", str(error)).strip().splitlines() or [""])[0][:200]
