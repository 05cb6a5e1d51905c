"""Checks of Python source for sentences that are not marked for translation, and for unusable marks."""

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
READ_ALOUD = re.compile(
    r'(?:aria-label|aria-description|alt|placeholder|title)="([^"]*)"'
)  # attributes that users read


def find_unmarked(source: str) -> list[str]:
    """Return user-visible sentences that are not marked: texts of two words or more, a field in braces being one.

    Of HTML, the text between tags and the attributes that are read aloud. Docstrings, log entries, Python's own
    exceptions, those that the author of a lesson gets at the start, and cited code do not count.
    """
    tree = _parse(source)
    hidden = {id(node) for subtree in _iter_hidden(tree) for node in ast.walk(subtree)}
    return [text for node in ast.walk(tree) if id(node) not in hidden for text in _texts(node) if is_prose(text)]


def find_misused_marks(source: str) -> list[str]:
    """Return marks that no translation can use.

    These are marks that Babel does not read, whose fields differ from their values, or that contain less than a
    sentence; and other uses of the marks' names.
    """
    tree = _parse(source)
    marked = [node for node in ast.walk(tree) if _is_marked(node)]
    misuses = [
        ast.unparse(call)
        for call in marked
        if not _is_literal(call) or not _has_matching_fields(call) or not _has_distinct_singular(call)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            misuses += [ast.unparse(node) for side in (node.left, node.right) if _is_marked(side)]
        if isinstance(node, ast.JoinedStr):
            misuses += [ast.unparse(node) for child in ast.walk(node) if _is_marked(child)]
    if any(isinstance(node, ast.ImportFrom) and node.module == "explorer.translations" for node in ast.walk(tree)):
        misuses += [f"line {node.lineno} names another thing _" for node in ast.walk(tree) if _is_shadow(node)]
    return misuses


def marked_messages(source: str) -> set[str | tuple[str, ...]]:
    """Return the messages of marks that hold only literals, as catalogues have them: singular and plural as a pair."""
    calls = [node for node in ast.walk(_parse(source)) if _is_marked(node) and _is_literal(node)]
    messages_by_call = (tuple(message.value for message in call.args[: MARKS[call.func.id]]) for call in calls)
    return {message if len(message) > 1 else message[0] for message in messages_by_call}


@cache
def _parse(source: str) -> ast.Module:
    return ast.parse(source)


def is_prose(text: str) -> bool:
    if TAG.search(text):
        return any(map(is_prose, [*TAG.split(text), *READ_ALOUD.findall(text)]))
    pieces = FIELD.sub("{}", text).split()
    words = [piece for piece in pieces if WORD.fullmatch(piece)]
    return len(words) > 1 or bool(words) and any("{}" in piece for piece in pieces)


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _iter_hidden(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes that users do not read, or that are already translated."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        if isinstance(node, ast.JoinedStr):  # text between its fields is not a text by itself
            yield from (part for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from node.args[: MARKS.get(node.func.id, 0)]
            if node.func.id == "SourceLine":
                yield node
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "LOG"
        ):
            yield node
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name == "LessonError" or isinstance(getattr(builtins, name, None), type):
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


def _has_matching_fields(call: ast.Call) -> bool:
    """Return whether the fields of the messages are the keywords of the call.

    A mark without values is a template; the values of a mapping are unknown here. Both count as matching.
    """
    keywords = {keyword.arg for keyword in call.keywords}
    if None in keywords or (not keywords and call.func.id != "ngettext"):
        return True
    keywords |= {"count"} if call.func.id == "ngettext" else set()
    return {name for message in call.args[: MARKS[call.func.id]] for name in fields(message.value)} == keywords


def _has_distinct_singular(call: ast.Call) -> bool:
    """Return whether singular and plural differ.

    If they are the same in English, another language could not be given two forms.
    """
    return call.func.id != "ngettext" or ast.unparse(call.args[0]) != ast.unparse(call.args[1])


def fields(message: str) -> set[str]:
    """Return the names in braces."""
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(message) if name is not None}


def _is_shadow(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "_" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.arg) and node.arg == "_"
