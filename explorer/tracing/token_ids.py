"""Validation of token ids, and their conversion between tokenizers."""

from collections.abc import Sequence

from explorer.errors import UserError
from explorer.state.page_state import MAX_TOKENS, common_prefix_length
from explorer.translations import _
from model.config import ModelConfig, window_start
from model.pretrained.chat_template import TEMPLATE, encode_chat, encode_chat_with_roles
from model.tokenizer import Message, Tokenizer


def check_tokens(config: ModelConfig, token_ids: Sequence[int]):
    """Raise UserError if a model cannot read the tokens."""
    if not 0 < len(token_ids) <= config.context_length:
        raise UserError(_("a run has 1 to {most} tokens, got {got}", most=config.context_length, got=len(token_ids)))
    check_ids(config, token_ids)


def check_ids(config: ModelConfig, token_ids: Sequence[int]):
    """Raise UserError if an id is not in a model's vocabulary."""
    if not all(0 <= token_id < config.vocab_size for token_id in token_ids):
        message = _("token ids run from 0 to {last}, got {least} to {most}")
        raise UserError(message.format(last=config.vocab_size - 1, least=min(token_ids), most=max(token_ids)))


def encode_prompt(
    text: str, tokenizer: Tokenizer, context_length: int, with_bos: bool = True
) -> tuple[tuple[int, ...], int]:
    """Return the ids of a prompt in the window that `generate` would read, and the number of those before it.

    Args:
        with_bos: whether the model's BOS tokens are prepended.

    Raises:
        UserError: the prompt is empty, or no text.
    """
    if not isinstance(text, str):
        raise UserError(_("The prompt must be text, got {got!r}.", got=text))
    if not (ids := tokenizer.encode(text)):
        raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
    ids = [*tokenizer.bos_ids * with_bos, *ids]
    start = window_start(len(ids), context_length)
    return tuple(ids[start:]), start


def encode_messages(
    messages: Sequence[Message], tokenizer: Tokenizer, context_length: int
) -> tuple[tuple[int, ...], int]:
    """Return the ids of a conversation in the window that `generate` would read, and the number of those before it.

    Raises:
        ModelError: the model has no chat template, or it refuses the messages.
    """
    ids = encode_chat(tokenizer, messages)
    start = window_start(len(ids), context_length)
    return tuple(ids[start:]), start


def token_roles(
    messages: Sequence[Message], token_ids: Sequence[int], num_prompt: int, dropped: int, tokenizer: Tokenizer
) -> list[str]:
    """Return the role of the message that each token belongs to, `TEMPLATE` for what the template wrote.

    "" for tokens that the template does not write so now: the prompt was changed, or has the day's date.

    Args:
        messages: those of the prompt; none: it is no conversation.
        token_ids: of the prompt and its continuation, which is an assistant's.
        num_prompt: how many of them are the prompt's.
        dropped: number of tokens before them.

    Raises:
        ModelError: the model has no chat template, or it refuses the messages.
    """
    if not messages:
        return []
    ids, roles = (part[dropped:] for part in encode_chat_with_roles(tokenizer, messages))
    prompt, written = token_ids[:num_prompt], token_ids[num_prompt:]
    num_common = num_prompt if len(ids) == num_prompt else common_prefix_length(ids, prompt)
    prompt_roles = [
        role if now == then else "" for now, then, role in zip(ids[:num_common], prompt, roles, strict=False)
    ]
    specials = {*tokenizer.special_tokens.values()}
    reply_roles = [TEMPLATE if token_id in specials else "assistant" for token_id in written]
    return prompt_roles + [""] * (num_prompt - num_common) + reply_roles


def has_bos(token_ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Return True if ids start with the tokens that their model expects before every text; many models expect none."""
    return tuple(token_ids[: len(tokenizer.bos_ids)]) == tokenizer.bos_ids


def strip_bos(token_ids: Sequence[int], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids without the tokens that the model expects before every text."""
    return tuple(token_ids[len(tokenizer.bos_ids) :] if has_bos(token_ids, tokenizer) else token_ids)


def retokenize(
    token_ids: Sequence[int],
    old: Tokenizer,
    new: Tokenizer,
    is_continuation: bool = False,
    previous_ids: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return the same text in another tokenizer's ids.

    It ends where the ids are no text (a part of a character) or too many. The end-of-text token is translated if
    both tokenizers have one; other special tokens are left out.

    Args:
        is_continuation: whether the ids follow others; if not, the tokens that the new model expects before a text
            are added if the ids start with those of the old one.
        previous_ids: the ids that they follow.
    """
    ids = [*new.bos_ids] if not is_continuation and has_bos(token_ids, old) else []
    segments = split_at_eos(token_ids if is_continuation else strip_bos(token_ids, old), old)
    for count, segment in enumerate(segments):
        if count:
            if new.end_of_text is None:
                break
            ids.append(new.end_of_text)
        starts = bool(count) or not is_continuation
        text, is_whole = decode_text_prefix(segment, old, None if starts else previous_ids)
        ids += new.encode(text) if starts else new.encode_continuation(text)
        if not is_whole:
            break
    return tuple(ids[:MAX_TOKENS])


def split_at_eos(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the ids before, between and after end-of-text tokens, without special tokens."""
    segments, specials = [[]], {*tokenizer.special_tokens.values()}
    for token_id in token_ids:
        if token_id == tokenizer.end_of_text:
            segments.append([])
        elif token_id not in specials:
            segments[-1].append(token_id)
    return segments


def decode_text_prefix(
    token_ids: Sequence[int], tokenizer: Tokenizer, previous_ids: Sequence[int] | None
) -> tuple[str, bool]:
    """Decode ids up to the first that is no text, and return whether that is all of them.

    Args:
        previous_ids: ids that they follow; None at the start of a text.
    """
    data = b"".join(map(tokenizer.token_bytes, token_ids))
    try:
        data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
        return text.removeprefix(" " if previous_ids is None and tokenizer.adds_space else ""), False
    if previous_ids is None:
        return tokenizer.decode(token_ids), True
    return tokenizer.decode_continuation(token_ids, previous_ids), True
