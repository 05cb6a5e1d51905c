"""Tokenizers for models whose vocabulary is their makers' own."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import ClassVar

from explorer.language import N_, _
from explorer.state.errors import UserError
from model.merges import MergeRules
from model.notes import Note

BYTES = 256
ENDS = "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"


class OwnTokenizer:
    """Tokens of somebody's own vocabulary: a table of their texts, and a way to cut a text into them.

    Args:
        tokens: bytes of each id, b"" of one without a text.
        encode: text -> ids.
        specials: ids that stand for no text.
        vocab_size: of the model, which may have more ids.
        merge_rules: of a byte-pair encoding.
    """

    beginning: ClassVar[tuple[int, ...]] = ()
    adds_space: ClassVar[bool] = False
    note: Note | None = None  # on how texts are cut

    def __init__(
        self,
        tokens: Sequence[bytes],
        encode: Callable[[str], list[int]],
        vocab_size: int,
        specials: Collection[int] = (),
        merge_rules: MergeRules | None = None,
    ):
        self._tokens = [*tokens, *[b""] * (vocab_size - len(tokens))][:vocab_size]
        self._encode, self._specials = encode, frozenset(specials)
        self.vocab_size, self.merge_rules = vocab_size, merge_rules
        self.special_tokens = {
            self._tokens[token_id].decode(errors="replace"): token_id for token_id in sorted(specials)
        }
        self.ends = tuple(self.special_tokens[text] for text in ENDS if text in self.special_tokens)

    @property
    def end_of_text(self) -> int | None:
        return self.ends[0] if self.ends else None

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; a lone surrogate is read as U+FFFD.

        Raises:
            UserError: the vocabulary has no tokens for some of it.
        """
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        ids = self._encode(text)
        if max(ids, default=0) >= self.vocab_size or b"".join(map(self.token_bytes, ids)) != text.encode():
            missing = next((each for each in text if not self._has(each)), text[:20])
            raise UserError(
                _(
                    "The model’s vocabulary has no token for {what!r}: type what its {size} tokens can spell, such as "
                    "{example!r}.",
                    what=missing,
                    size=self.vocab_size,
                    example=self.example,
                )
            )
        return ids

    def _has(self, character: str) -> bool:
        ids = self._encode(character)
        return b"".join(self._tokens[each] for each in ids if each < self.vocab_size) == character.encode()

    @cached_property
    def example(self) -> str:
        """A short text that can be encoded."""
        letters = [token.decode(errors="ignore") for token in self._tokens if len(token) == 1]
        return "".join(
            [each for each in letters if each.isalnum()][:4] or [each for each in letters if each.strip()][:4]
        )

    def encode_continuation(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        found = (self.token_bytes(token_id) for token_id in ids if token_id not in self._specials)
        return b"".join(found).decode("utf-8", errors="replace")

    def decode_continuation(self, ids: Sequence[int]) -> str:
        return self.decode(ids)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token; ValueError where there is none."""
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")
        return self._tokens[token_id]

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None of a special token."""
        return tuple(None if each in self._specials else token for each, token in enumerate(self._tokens))

    def token_text(self, token_id: int) -> str:
        """Return how a token is shown: its text, the hexadecimal bytes of a part of a character, or its id."""
        token = self.token_bytes(token_id)
        if not token:
            return f"<{token_id}>"
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """`token_text` of every id."""
        return tuple(map(self.token_text, range(self.vocab_size)))


def bytes_tokenizer(vocab_size: int) -> OwnTokenizer:
    """A tokenizer for a model whose vocabulary nobody gave: ids up to 255 are bytes, others stand for themselves."""
    tokens = [bytes([byte]) for byte in range(min(BYTES, vocab_size))]
    tokens += [f"<{token_id}>".encode() for token_id in range(BYTES, vocab_size)]
    made = OwnTokenizer(tokens, longest_first(tokens), vocab_size)
    if vocab_size > BYTES:
        made.note = Note(
            N_("No vocabulary was given (--tokenizer): tokens are bytes, and ids beyond {last} have no text"),
            last=BYTES - 1,
        )
    else:
        made.note = Note(
            N_("No vocabulary was given (--tokenizer): its {count} tokens are read as bytes, and have no other text"),
            count=vocab_size,
        )
    return made


def longest_first(tokens: Sequence[bytes]) -> Callable[[str], list[int]]:
    """A way to cut a text: from the left, always the longest token that fits; an unknown byte ends it."""
    ids = {token: token_id for token_id, token in reversed(list(enumerate(tokens))) if token}
    lengths = sorted({len(token) for token in ids}, reverse=True)

    def encode(text: str) -> list[int]:
        content, at, found = text.encode(), 0, []
        while at < len(content):
            length = next((length for length in lengths if content[at : at + length] in ids), 0)
            if not length:
                break
            found.append(ids[content[at : at + length]])
            at += length
        return found

    return encode
