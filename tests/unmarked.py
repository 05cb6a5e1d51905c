"""Finds sentences in Python that no translator would see, and marks that none could work with."""

import ast
import builtins
import re
import string
from collections.abc import Iterator
from functools import cache

MARKS = {"_": 1, "N_": 1, "ngettext": 2}  # how many of the first arguments are messages
FIELD = re.compile(r"{[^{}]*}")
WORD = re.compile(r"[(“‘]*[^\W\d_]{2,}(?:['’-][^\W\d_]+)*[)”’,.;:?!…]*")
TAG = re.compile(r"<[/!a-z][^>]*>")
SPOKEN = re.compile(r'(?:aria-label|aria-description|alt|placeholder|title)="([^"]*)"')  # attributes that people read


def unmarked(source: str) -> list[str]:
    """Sentences that visitors read as they are: texts with two words or more, a name or a value in braces being one;
    of HTML what is between tags, and attributes that are read out.

    Docstrings, entries of logs and exceptions of Python's own, which are told to programmers, are none, nor is
    code that is cited.
    """
    tree = _parsed(source)
    hidden = {id(node) for part in _unseen(tree) for node in ast.walk(part)}
    return [text for node in ast.walk(tree) if id(node) not in hidden for text in _texts(node) if is_prose(text)]


def misused(source: str) -> list[str]:
    """Marks that Babel does not read, that name other values than they are given, or that leave a translator with less
    than a sentence; and other things that are called as the mark is."""
    tree = _parsed(source)
    marked = [node for node in ast.walk(tree) if _is_marked(node)]
    found = [
        ast.unparse(call)
        for call in marked
        if not _is_literal(call) or not _names_its_values(call) or not _has_a_singular(call)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            found += [ast.unparse(node) for side in (node.left, node.right) if _is_marked(side)]
        if isinstance(node, ast.JoinedStr):
            found += [ast.unparse(node) for part in ast.walk(node) if _is_marked(part)]
    if any(isinstance(node, ast.ImportFrom) and node.module == "explorer.language" for node in ast.walk(tree)):
        found += [f"line {node.lineno} names another thing _" for node in ast.walk(tree) if _is_shadow(node)]
    return found


def messages(source: str) -> set[str | tuple[str, ...]]:
    """What marks that hold nothing but literals mark, as catalogues have it: singular and plural as a pair."""
    calls = [node for node in ast.walk(_parsed(source)) if _is_marked(node) and _is_literal(node)]
    each = (tuple(message.value for message in call.args[: MARKS[call.func.id]]) for call in calls)
    return {message if len(message) > 1 else message[0] for message in each}


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def is_prose(text: str) -> bool:
    if TAG.search(text):
        return any(map(is_prose, [*TAG.split(text), *SPOKEN.findall(text)]))
    pieces = FIELD.sub("{}", text).split()
    words = [piece for piece in pieces if WORD.fullmatch(piece)]
    return len(words) > 1 or bool(words) and any("{}" in piece for piece in pieces)


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _unseen(tree: ast.AST) -> Iterator[ast.AST]:
    """What visitors do not read, or read in their own language."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        if isinstance(node, ast.JoinedStr):  # what stands between its fields is no text of its own
            yield from (part for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from node.args[: MARKS.get(node.func.id, 0)]
            if node.func.id == "Source":
                yield node
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "LOG"
        ):
            yield node
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if isinstance(getattr(builtins, name, None), type):
                yield node.exc
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            yield node.annotation
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            yield node.returns


def _is_marked(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS


def _is_literal(call: ast.Call) -> bool:
    messages = [message for message in call.args[: MARKS[call.func.id]] if isinstance(message, ast.Constant)]
    return len(messages) == MARKS[call.func.id] and all(isinstance(m.value, str) and m.value for m in messages)


def _names_its_values(call: ast.Call) -> bool:
    """Without values it is a template; those of a mapping are not known here."""
    given = {keyword.arg for keyword in call.keywords}
    if None in given or (not given and call.func.id != "ngettext"):
        return True
    given |= {"count"} if call.func.id == "ngettext" else set()
    return {name for message in call.args[: MARKS[call.func.id]] for name in fields(message.value)} == given


def _has_a_singular(call: ast.Call) -> bool:
    """Of a count whose noun never changes in English, another language could not be asked for one."""
    return call.func.id != "ngettext" or ast.unparse(call.args[0]) != ast.unparse(call.args[1])


def fields(message: str) -> set[str]:
    """The names in braces."""
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(message) if name is not None}


def _is_shadow(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "_" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.arg) and node.arg == "_"
