"""Models of the benchmarks."""

import torch

from model import CheckpointError, ModelConfig, TransformerLM, load_checkpoint


def reference_model() -> TransformerLM:
    """Return a model of six layers, d_model 256 and 8 heads, with random weights."""
    return random_model(d_model=256, num_heads=8, d_ff=704)


def bundled_model() -> TransformerLM:
    """Return the checkpoint `llama-fables`; if it is missing, a random model of the same shape."""
    try:
        return load_checkpoint("llama-fables")[0]
    except CheckpointError as error:
        print(f"random weights in place of the bundled ones: {error}")
        return random_model(d_model=192, num_heads=6, d_ff=512, tie_embeddings=True)


def gpt2_small() -> TransformerLM:
    """Return a model of GPT-2 small's size with random weights."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 50257, "context_length": 1024, "d_model": 768, "num_layers": 12, "num_heads": 12}
    config = ModelConfig.gpt_style(**sizes, d_ff=3072, position="learned", ffn="gelu_tanh", tie_embeddings=True)
    return TransformerLM(config).eval().requires_grad_(False)


def random_model(**sizes) -> TransformerLM:
    torch.manual_seed(0)
    config = ModelConfig.llama_style(vocab_size=4096, context_length=256, num_layers=6, **sizes)
    return TransformerLM(config).eval().requires_grad_(False)


def random_prompt(lm: TransformerLM, num_tokens: int) -> torch.Tensor:
    """Return random token ids (1, num_tokens), the same each time."""
    ids = torch.randint(lm.config.vocab_size, (1, num_tokens), generator=torch.Generator().manual_seed(0))
    return ids.to(lm.device)
