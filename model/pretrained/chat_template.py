"""Chat templates: how the messages of a conversation become the text that a chat model reads.

A template is a program in Jinja, by a stranger. As in transformers it runs in jinja2's sandbox, which has no access to
Python; the numbers that it loops over and the length of its text are bounded, too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from model.checkpoint_reader import read_json, require_readable
from model.errors import ModelError
from model.pretrained.tokenizer import SETTINGS, PretrainedTokenizer
from model.tokenizer import Message, check_messages

TEMPLATE_FILE = "chat_template.jinja"
MAX_TEMPLATE_BYTES = 1 << 20
MAX_RENDERED_CHARACTERS = 1 << 22
MAX_LOOPS = 100_000  # of all ranges of numbers of a template together
# Characters that Unicode leaves undefined: around the name of a special token that a message has as text, and around a
# message's number in its content's place.
MARK, MARK_END, SLOT, SLOT_END = map(chr, range(0xFDD0, 0xFDD4))
TEMPLATE = "template"  # in a role's place, of tokens that no message has


def read_chat_template(folder: Path) -> str | None:
    """Return the chat template of a folder that transformers saved; None if it has none.

    Of several templates, this is the one named "default".

    Raises:
        ModelError: a file cannot be read.
    """
    path = folder / TEMPLATE_FILE
    if path.exists():
        return require_readable(path, MAX_TEMPLATE_BYTES).read_text(encoding="utf-8")
    if not (folder / SETTINGS).exists():
        return None
    template = read_json(folder / SETTINGS).get("chat_template")
    if isinstance(template, list):
        names = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = names.get("default")
    return template if isinstance(template, str) else None


def render_chat(
    template: str,
    messages: Sequence[Message],
    special_tokens: Mapping[str, str],
    *,
    add_generation_prompt: bool = True,
) -> str:
    """Return the text of a conversation by a template, equal to that of transformers' `apply_chat_template`.

    Args:
        special_tokens: name in templates, such as "bos_token" -> text of the token.
        add_generation_prompt: whether the beginning of the assistant's reply follows.

    Raises:
        ModelError: the template has an error, refuses the messages, or writes too much.
    """
    from jinja2 import TemplateError

    values = {"tools": None, "documents": None, "add_generation_prompt": add_generation_prompt, **special_tokens}
    budget = [MAX_LOOPS]

    def bounded_range(*arguments: int) -> range:
        numbers = range(*arguments)
        budget[0] -= len(numbers)
        if budget[0] < 0:
            raise ValueError(f"it loops over more than {MAX_LOOPS:,} numbers")
        return numbers

    text = ""
    try:
        for part in _compile(template).generate(messages=check_messages(messages), range=bounded_range, **values):
            text += part
            if len(text) > MAX_RENDERED_CHARACTERS:
                raise ValueError(f"it writes more than {MAX_RENDERED_CHARACTERS:,} characters")
    except ModelError:
        raise
    except (
        TemplateError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ModelError("the model’s chat template fails: {why}", why=str(error) or type(error).__name__) from None
    return text


def encode_chat(
    tokenizer: PretrainedTokenizer, messages: Sequence[Message], *, add_generation_prompt: bool = True
) -> list[int]:
    """Return the ids of a conversation, all that the model reads: the template writes what begins a text, too.

    Only the template's own special tokens are read as such; in a message their names are text.

    Raises:
        ModelError: the tokenizer has no template, or see `render_chat`.
    """
    return encode_chat_with_roles(tokenizer, messages, add_generation_prompt=add_generation_prompt)[0]


def encode_chat_with_roles(
    tokenizer: PretrainedTokenizer, messages: Sequence[Message], *, add_generation_prompt: bool = True
) -> tuple[list[int], list[str]]:
    """Return the ids of a conversation, and of each the role of the message that it belongs to.

    The role is `TEMPLATE` for what the template adds, and "" for all if it changes the messages' texts. It raises
    the errors of `encode_chat`.
    """
    if not has_chat_template(tokenizer):
        raise ModelError("this model has no chat template: it continues a text, and has no messages")
    names = "|".join(map(re.escape, sorted(tokenizer.special_tokens, key=len, reverse=True)))
    marked = [
        dict(message, content=_mark_special_tokens(message["content"], names)) for message in check_messages(messages)
    ]
    options = {"add_generation_prompt": add_generation_prompt}
    text = render_chat(tokenizer.chat_template, marked, tokenizer.special_names, **options)
    spans = _find_contents(tokenizer, marked, text, options)
    ids: list[int] = []
    roles: list[str] = []
    start = 0
    for index, part in enumerate(re.split(f"[{MARK}{MARK_END}]", text)):
        if index % 2:
            part_ids = tokenizer.encode_continuation(part)
            offsets = [(0, len(part))] * len(part_ids)
        else:
            part_ids, offsets = tokenizer.encode_with_special_tokens(part)
        ids += part_ids
        roles += ["" if spans is None else _find_role(spans, start + begin, start + end) for begin, end in offsets]
        start += len(part) + 1
    return ids, roles


def has_chat_template(tokenizer: Any) -> bool:
    """Return whether a tokenizer, of any kind, has a chat template."""
    return getattr(tokenizer, "chat_template", None) is not None


def end_of_turn_ids(tokenizer: PretrainedTokenizer) -> tuple[int, ...]:
    """Return the special token by which the template ends an assistant's message; () if there is none."""
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    try:
        ids, roles = encode_chat_with_roles(tokenizer, messages, add_generation_prompt=False)
    except ModelError:
        return ()
    if "assistant" not in roles:
        return ()
    after = ids[len(roles) - roles[::-1].index("assistant") :]
    return tuple(token_id for token_id in after if token_id in tokenizer.special_tokens.values())[:1]


def _find_contents(
    tokenizer: PretrainedTokenizer, messages: Sequence[Message], text: str, options: dict[str, Any]
) -> list[tuple[int, int, str]] | None:
    """Return where the messages' contents are in a rendered text, with their roles; None if they are not in it as such.

    The template is rendered with numbers in their places; with the contents there it must be the same text.
    """
    slots = [dict(message, content=f"{SLOT}{index}{SLOT_END}") for index, message in enumerate(messages)]
    try:
        skeleton = render_chat(tokenizer.chat_template, slots, tokenizer.special_names, **options)
    except ModelError:
        return None
    pattern, roles = "", []
    for index, piece in enumerate(re.split(f"{SLOT}(\\d+){SLOT_END}", skeleton)):
        if index % 2:
            content = messages[int(piece)]["content"]  # which many templates strip
            roles.append(messages[int(piece)]["role"])
            pattern += f"({re.escape(content)}|{re.escape(content.strip())})"
        else:
            pattern += re.escape(piece)
    match = re.fullmatch(pattern, text)
    return match and [(*match.span(group), role) for group, role in enumerate(roles, start=1)]


def _find_role(spans: Sequence[tuple[int, int, str]], start: int, end: int) -> str:
    return next((role for begin, stop, role in spans if max(begin, start) < min(stop, end)), TEMPLATE)


def _mark_special_tokens(text: str, names: str) -> str:
    text = re.sub(f"[{MARK}-{SLOT_END}]", "", text)
    return re.sub(names, lambda match: f"{MARK}{match[0]}{MARK_END}", text) if names else text


def _size(value: Any) -> float:
    """Return how large a product with a value may be: its length or, of a number, the number itself."""
    return abs(value) if isinstance(value, int | float) else len(value)


@lru_cache(16)
def _compile(template: str) -> Any:
    """Return a compiled template, with the filters and functions that transformers offers.

    Raises:
        jinja2.TemplateError: it has a wrong syntax.
    """
    try:
        import jinja2
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ModelError("chat templates need the package jinja2: pip install jinja2") from None

    class GenerationTag(Extension):
        """The tag `generation`, around what an assistant wrote; it changes no text."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def to_json(value: Any, ensure_ascii=False, indent=None, separators=None, sort_keys=False) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    class BoundedEnvironment(ImmutableSandboxedEnvironment):
        """The sandbox, without products and powers that would fill the memory."""

        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            size = max(_size(left), 1) * max(_size(right), 1) if operator == "*" else _size(left) * abs(right)
            if size > MAX_RENDERED_CHARACTERS:
                raise ValueError(f"it computes a value of more than {MAX_RENDERED_CHARACTERS:,} characters")
            return super().call_binop(context, operator, left, right)

    environment = BoundedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment.from_string(template)
