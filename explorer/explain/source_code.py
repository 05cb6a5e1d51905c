"""This project's source code: lines that compute displayed numbers, and functions of `model/` with this run's sizes."""

import ast
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from explorer.translations import _
from model.config import ModelConfig

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SourceLine:
    """A line of source code that computes something, identified by a unique fragment of its text.

    Attributes:
        path: path of the file, relative to the repository's root.
        fragment: text that exactly one line of the file, or of the definition, contains.
        definition: name of the function or class that contains the line, if others have lines like it.
    """

    path: str
    fragment: str
    definition: str | None = None

    @property
    def line(self) -> int:
        """Line number, from 1; ValueError unless exactly one line contains the fragment."""
        return find_source_line(self)[0]

    @property
    def text(self) -> str:
        """The whole line without its indentation."""
        return find_source_line(self)[1]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.text}"


@cache
def find_source_line(source: SourceLine) -> tuple[int, str]:
    """Return the number and text of the line with the fragment; ValueError unless it is one line."""
    code = (ROOT / source.path).read_text(encoding="utf-8")
    tree, lines = ast.parse(code), list(enumerate(code.splitlines(), 1))
    if source.definition:
        node = next(node for node in tree.body if getattr(node, "name", None) == source.definition)
        lines = lines[node.lineno - 1 : node.end_lineno]
    quotes = {  # lines of the derivation itself, in the same file
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and source.fragment in node.value
    }
    hits = [(number, line.strip()) for number, line in lines if source.fragment in line and number not in quotes]
    if len(hits) != 1:
        raise ValueError(f"one line of {source.path} should hold {source.fragment!r}, but {len(hits)} do")
    return hits[0]


def code_text(lm: Any, num_tokens: int, layer: int, parts: Sequence[str]) -> str:
    """Return the code of functions and of a model's parts, after a line of this run's sizes.

    Args:
        lm, layer, parts: as of `model_code`.
        num_tokens: that the model reads.
    """
    return f"{shape_letters_line(lm.config, num_tokens)}\n\n{model_code(lm, layer, parts)}".rstrip()


def model_code(lm: Any, layer: int, parts: Sequence[str]) -> str:
    """Return the code of functions and of a model's parts.

    Args:
        lm: the model.
        layer: whose parts are meant by "{layer}".
        parts: names of the model's parts, such as "blocks.{layer}.attn", whose `forward` is shown, "" for the whole
            model; or functions, as "model.layers.attention:attention_scores", or as one that a part calls,
            "blocks.{layer}.attn:rotate". Parts that the model lacks are left out.
    """
    named_modules = dict(lm.named_modules())
    functions = []
    for part in parts:
        owner, is_function, name = part.format(layer=layer).partition(":")
        module = named_modules.get(owner)
        if is_function and not owner.startswith("blocks."):
            functions.append(operator.attrgetter(name)(importlib.import_module(owner)))
        elif module is not None:
            functions.append(getattr(module, name) if is_function else type(module).forward)
    return "\n\n".join(map(function_source, dict.fromkeys(functions)))


def mark_line(code: str, fragments: Sequence[str]) -> str:
    """Return code with an arrow before the line that has the first of the fragments that occur, in its indentation."""
    lines = code.splitlines()
    hits = (i for fragment in fragments for i, line in enumerate(lines) if fragment in line)
    if (marked := next(hits, None)) is not None:
        lines[marked] = f"→{lines[marked][1:]}"
    return "\n".join(lines)


def shape_letters_line(config: ModelConfig, num_tokens: int) -> str:
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
