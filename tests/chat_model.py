"""A small random chat model, as a folder that transformers opens."""

from pathlib import Path

import torch

from model.config import ModelConfig
from model.pretrained.export_hugging_face import save_hugging_face
from model.tokenizer import END_OF_TEXT, Tokenizer
from model.transformer_lm import TransformerLM
from tests import sample_models

START, END = "<|im_start|>", "<|im_end|>"  # delimit a turn; texts end with another token
TEMPLATE = f"""{{%- if messages[0].role == 'assistant' %}}{{{{ raise_exception('a user begins') }}}}{{% endif %}}
{{%- for m in messages %}}{START}{{{{ m.role }}}}
{{{{ m.content | trim }}}}{END}
{{% endfor %}}{{% if add_generation_prompt %}}{START}assistant
{{% endif %}}"""


def write_chat_model(folder: Path, template: str = TEMPLATE) -> Path:
    """Write the model and return its folder."""
    ranks = {token: rank for rank, token in enumerate(filter(None, sample_models.tokenizer().bytes_of_ids))}
    tokenizer = Tokenizer(ranks, (END_OF_TEXT, START, END))
    torch.manual_seed(7)
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 2, "num_heads": 2, "context_length": 256}
    lm = TransformerLM(ModelConfig.llama_style(vocab_size=tokenizer.vocab_size, **sizes))
    save_hugging_face(lm, tokenizer, folder)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder
