"""Models of llama2.c (https://github.com/karpathy/llama2.c): Llama's architecture in one binary file.

The format is that of its `run.c`; the tokenizer is in another file.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import AddedToken, processors
from torch import Tensor

from model.checkpoint_reader import require_readable, weight_shapes
from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained.tokenizer import SPACE, PretrainedTokenizer, build_sentencepiece
from model.transformer_lm import TransformerLM
from model.weight_placement import WeightPlacement, build_model

HEADER = struct.Struct("<7i")  # D, F, L, H, G, V (negative where the unembedding is a table of its own), C
LATER_FORMATS = 0x616B3432  # "ak42", with which files of these begin
SPECIALS = ("<unk>", "<s>", "</s>")  # ids 0, 1, 2; then 256 single bytes, then pieces
PIECE = struct.Struct("<fi")  # score, bytes that follow
FIRST_PIECE = len(SPECIALS) + 256

# The weights in the file's order, those of blocks for all layers in turn.
NAMES = (
    "token_embedding.weight",
    "blocks.*.attn_norm.weight",
    "blocks.*.attn.q_proj.weight",
    "blocks.*.attn.k_proj.weight",
    "blocks.*.attn.v_proj.weight",
    "blocks.*.attn.o_proj.weight",
    "blocks.*.ffn_norm.weight",
    "blocks.*.ffn.gate_proj.weight",
    "blocks.*.ffn.down_proj.weight",
    "blocks.*.ffn.up_proj.weight",
    "final_norm.weight",
    "",  # cosines and sines of the rotations, which follow from the config
    "lm_head.weight",
)


def load_llama2c(
    path: Path, dtype: torch.dtype = torch.float32, placement: WeightPlacement | None = None
) -> tuple[TransformerLM, PretrainedTokenizer]:
    """Load the model of a `.bin` file and the tokenizer of the only `tok*.bin` beside it.

    Raises:
        ModelError: a file is missing, cut off, or in another format.
    """
    tokenizer_files = [other for other in sorted(path.parent.glob("tok*.bin")) if other != path]
    if len(tokenizer_files) != 1:
        raise ModelError(
            "one tokenizer, tok*.bin, is to lie beside {file}, found {count}",
            file=path.name,
            count=len(tokenizer_files),
        )
    size = require_readable(path).stat().st_size
    with path.open("rb") as file:
        config = parse_config(file.read(HEADER.size), path.name)
    layout = dict(tensor_layout(config))
    expected_size = HEADER.size + 4 * sum(torch.Size(shape).numel() for shape in layout.values())
    if size != expected_size:
        raise ModelError(
            "{file} should have {wanted:,} bytes by its header, got {got:,}",
            file=path.name,
            wanted=expected_size,
            got=size,
        )
    tokenizer = read_tokenizer(require_readable(tokenizer_files[0]), config.vocab_size)
    weights = ((name, weight.to(dtype)) for name, weight in read_weights(path, layout).items())
    return build_model(config, weights, dtype, placement), tokenizer


def parse_config(header: bytes, name: str) -> ModelConfig:
    """Parse a file's header of seven numbers."""
    if len(header) < HEADER.size:
        raise ModelError("{file} is no model of llama2.c: it has {size} bytes", file=name, size=len(header))
    d_model, d_ff, num_layers, num_heads, num_kv_heads, vocab_size, context_length = HEADER.unpack(header)
    if d_model == LATER_FORMATS:
        raise ModelError("{file} is in a later format of llama2.c: export the model with --version 0", file=name)
    return ModelConfig.llama_style(
        vocab_size=abs(vocab_size),
        context_length=context_length,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        d_ff=d_ff,
        tie_embeddings=vocab_size > 0,
    )


def tensor_layout(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of each tensor in a file, in its order."""
    shapes = dict(weight_shapes(config))
    for name in NAMES:
        if not name:
            yield name, (2, config.context_length, config.d_head // 2)
        elif "*" in name:
            yield from (
                (weight_name, shapes[weight_name])
                for weight_name in (name.replace("*", str(i)) for i in range(config.num_layers))
            )
        elif name in shapes:  # no unembedding that is tied
            yield name, shapes[name]


def read_weights(path: Path, layout: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return copies of the file's weights by name; ModelError if one is not finite."""
    sizes = [torch.Size(shape).numel() for shape in layout.values()]
    numbers = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32, offset=HEADER.size)
    if not numbers.isfinite().all():
        raise ModelError("{file} holds numbers that are not finite: it is damaged", file=path.name)
    tensors = zip(layout.items(), numbers.split(sizes), strict=True)
    return {name: tensor.view(shape).clone() for (name, shape), tensor in tensors if name}


def read_tokenizer(path: Path, vocab_size: int) -> PretrainedTokenizer:
    """Read a tokenizer: the length of its longest piece, then each id's score and the bytes of its piece.

    Of neighbouring pieces that together make a piece, those of the highest score are merged first.
    """
    content, scores, pieces = path.read_bytes(), [], []
    offset = 4
    try:
        for token_id in range(vocab_size):
            score, length = PIECE.unpack_from(content, offset)
            offset += PIECE.size + length
            if length < 0 or offset > len(content):
                raise ValueError(f"piece {token_id} has {length} bytes")
            piece = content[offset - length : offset].decode()
            special_piece = SPECIALS[token_id] if token_id < len(SPECIALS) else f"<0x{token_id - len(SPECIALS):02X}>"
            scores.append(score)
            pieces.append(special_piece if token_id < FIRST_PIECE else piece.replace(" ", SPACE))
    except (struct.error, ValueError) as error:
        raise ModelError("{file} is no tokenizer of llama2.c: {why}", file=path.name, why=error) from None
    if offset != len(content):
        raise ModelError("{file} has more than the {count} tokens of the model", file=path.name, count=vocab_size)
    tokenizer = build_sentencepiece(pieces, scores, SPECIALS[0], range(FIRST_PIECE, len(pieces)))
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PretrainedTokenizer(tokenizer, range(len(SPECIALS)), bos_ids=[1], eos_ids=[2])
