"""A tokenizer as the `tokenizer.json` that Hugging Face's libraries read."""

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from model.pretrained.tokenizer import PretrainedTokenizer, write_visible_bytes
from model.tokenizer import Tokenizer


def tokenizer_json(tokenizer: Tokenizer | PretrainedTokenizer) -> str:
    """The file's content.

    Raises:
        ValueError: a token of ours cannot be made by merges, so that the format has no way to say it.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer.to_json()
    ordinary = [token for token in tokenizer.bytes_of_ids if token is not None]
    ids = {write_visible_bytes(token): token_id for token_id, token in enumerate(ordinary)}
    merges = [(write_visible_bytes(left), write_visible_bytes(right)) for left, right in tokenizer.merges]
    found = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=merges))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # with GPT-2's pattern, which is ours
    found.decoder = decoders.ByteLevel()
    found.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in tokenizer.special_tokens])
    return found.to_str(pretty=True)
