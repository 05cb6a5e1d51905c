"""Source code of the functions of `model/` that compute what a view shows, with the sizes that they have in a run."""

import ast
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from explorer.explain.source_line import ROOT
from explorer.translations import _
from model.config import ModelConfig


def code_text(lm: Any, num_tokens: int, layer: int, parts: Sequence[str]) -> str:
    """Return the code of functions and of a model's parts, after a line of this run's sizes.

    Args:
        lm: the model.
        num_tokens: that it reads.
        layer: whose parts are meant by "{layer}".
        parts: names of the model's parts, such as "blocks.{layer}.attn", whose `forward` is shown, "" for the whole
            model; or functions as "model.layers.attention:attention_scores". Parts that the model lacks are left out.
    """
    named_modules = dict(lm.named_modules())
    functions = []
    for part in parts:
        module, is_function, name = part.partition(":")
        if is_function:
            functions.append(operator.attrgetter(name)(importlib.import_module(module)))
        elif (found := named_modules.get(part.format(layer=layer))) is not None:
            functions.append(type(found).forward)
    return "\n\n".join([size_line(lm.config, num_tokens), *map(function_source, dict.fromkeys(functions))])


def size_line(config: ModelConfig, num_tokens: int) -> str:
    """Return what the letters of the comments on shapes are in a run."""
    sizes = {
        "B": 1,
        "T": num_tokens,
        "D": config.d_model,
        "H": config.num_heads,
        "d": config.d_head,
        "F": config.d_ff,
        "V": config.vocab_size,
    }
    return _("shapes in this run: {sizes}", sizes=", ".join(f"{letter} = {size}" for letter, size in sizes.items()))


@cache
def function_source(function: Callable) -> str:
    """Return a function's file, line and source without its docstring."""
    lines, start = inspect.getsourcelines(function)
    definition = ast.parse(textwrap.dedent("".join(lines))).body[0]
    if isinstance(first := definition.body[0], ast.Expr) and isinstance(first.value, ast.Constant):
        del lines[first.lineno - 1 : first.end_lineno]
    path = inspect.getsourcefile(function).removeprefix(f"{ROOT}/")
    return f"{path}:{start}  {function.__qualname__}\n{textwrap.dedent(''.join(lines)).rstrip()}"
