"""Tokenizers for models with a custom vocabulary."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import ClassVar

from explorer.errors import UserError
from explorer.translations import N_, _
from model.errors import Note
from model.tokenizer import MergeRules

BYTES = 256
ENDS = "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"


class CustomTokenizer:
    """A custom vocabulary: a table of the tokens' bytes, and a function that splits a text into them.

    Args:
        tokens: bytes of each id, b"" for one without a text.
        encode: text -> ids.
        specials: ids of special tokens, which stand for no text.
        vocab_size: of the model, which may have more ids.
        merge_rules: of a byte-pair encoding.
    """

    bos_ids: ClassVar[tuple[int, ...]] = ()
    beginning: ClassVar[tuple[int, ...]] = ()  # earlier name of `bos_ids`
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
        self.eos_ids = tuple(self.special_tokens[text] for text in ENDS if text in self.special_tokens)

    @property
    def end_of_text(self) -> int | None:
        return self.eos_ids[0] if self.eos_ids else None

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; a lone surrogate is read as U+FFFD.

        Raises:
            UserError: the vocabulary has no tokens for some of it.
        """
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        ids = self._encode(text)
        if max(ids, default=0) >= self.vocab_size or b"".join(map(self.token_bytes, ids)) != text.encode():
            missing = next((character for character in text if not self._can_encode(character)), text[:20])
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

    def _can_encode(self, character: str) -> bool:
        ids = self._encode(character)
        return b"".join(self._tokens[token_id] for token_id in ids if token_id < self.vocab_size) == character.encode()

    @cached_property
    def example(self) -> str:
        """A short text that can be encoded."""
        letters = [token.decode(errors="ignore") for token in self._tokens if len(token) == 1]
        return "".join(
            [letter for letter in letters if letter.isalnum()][:4]
            or [letter for letter in letters if letter.strip()][:4]
        )

    def encode_continuation(self, text: str) -> list[int]:
        """Encode text that continues another, as `encode` does."""
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        token_bytes = (self.token_bytes(token_id) for token_id in ids if token_id not in self._specials)
        return b"".join(token_bytes).decode("utf-8", errors="replace")

    def decode_continuation(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
        """Return the text that ids add to the text of the ids `before`."""
        return self.decode(ids)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token.

        Raises:
            ValueError: there is no such id.
        """
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")
        return self._tokens[token_id]

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None for special tokens."""
        return tuple(None if token_id in self._specials else token for token_id, token in enumerate(self._tokens))

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


def bytes_tokenizer(vocab_size: int) -> CustomTokenizer:
    """Return a tokenizer for a model without a vocabulary: ids up to 255 are bytes, others "<id>"."""
    tokens = [bytes([byte]) for byte in range(min(BYTES, vocab_size))]
    tokens += [f"<{token_id}>".encode() for token_id in range(BYTES, vocab_size)]
    tokenizer = CustomTokenizer(tokens, greedy_encoder(tokens), vocab_size)
    if vocab_size > BYTES:
        tokenizer.note = Note(
            N_("No vocabulary was given (--tokenizer): tokens are bytes, and ids beyond {last} have no text"),
            last=BYTES - 1,
        )
    else:
        tokenizer.note = Note(
            N_("No vocabulary was given (--tokenizer): its {count} tokens are read as bytes, and have no other text"),
            count=vocab_size,
        )
    return tokenizer


def greedy_encoder(tokens: Sequence[bytes]) -> Callable[[str], list[int]]:
    """Return an encoder that takes the longest matching token from the left; an unknown byte ends it."""
    ids = {token: token_id for token_id, token in reversed(list(enumerate(tokens))) if token}
    lengths = sorted({len(token) for token in ids}, reverse=True)

    def encode(text: str) -> list[int]:
        content, position, token_ids = text.encode(), 0, []
        while position < len(content):
            length = next((length for length in lengths if content[position : position + length] in ids), 0)
            if not length:
                break
            token_ids.append(ids[content[position : position + length]])
            position += length
        return token_ids

    return encode
