"""Export of a tokenizer as the `tokenizer.json` of Hugging Face's libraries."""

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from model.pretrained.tokenizer import PretrainedTokenizer, encode_byte_level_piece
from model.tokenizer import Tokenizer


def tokenizer_json(tokenizer: Tokenizer | PretrainedTokenizer) -> str:
    """Return the content of a `tokenizer.json`.

    Raises:
        ValueError: one of our tokens cannot be made by merges, which the format requires.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer.to_json()
    ordinary = [token for token in tokenizer.bytes_of_ids if token is not None]
    ids = {encode_byte_level_piece(token): token_id for token_id, token in enumerate(ordinary)}
    merges = [(encode_byte_level_piece(left), encode_byte_level_piece(right)) for left, right in tokenizer.merges]
    hf_tokenizer = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=merges))
    hf_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False
    )  # splits by GPT-2's pattern, as WORD_PATTERN does
    hf_tokenizer.decoder = decoders.ByteLevel()
    hf_tokenizer.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in tokenizer.special_tokens])
    return hf_tokenizer.to_str(pretty=True)
