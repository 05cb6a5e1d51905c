import pytest
import tokenizers
import torch

from tests.model.pretrained.model_kinds import KINDS, NO_IDS


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=280, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["the fox and the moon and the fox"] * 3, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def save_random_model(tmp_path_factory):
    """`save_random_model(kind)`: random model of that kind, and its folder with a tokenizer."""
    from tests.hugging_face import transformers

    def save(kind: str, **options):
        name, settings = KINDS[kind]
        torch.manual_seed(0)
        text_suffix = "Text" * (name == "Gemma3")
        hf_config = getattr(transformers, f"{name}{text_suffix}Config")(**settings, **NO_IDS, initializer_range=0.3)
        model = getattr(transformers, f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")(
            hf_config
        ).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # changes initial gains and biases, too
                parameter.add_(torch.randn_like(parameter) / 10)
        folder = tmp_path_factory.mktemp("saved")
        model.save_pretrained(folder, **options)
        byte_level().save(str(folder / "tokenizer.json"))
        return model, folder

    return save
