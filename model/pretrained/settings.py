"""What another's config says, read field by field, so that nothing of it goes unread."""

from typing import Any

from model.config_checks import MOST_LAYERS, check_size
from model.errors import ModelError

# What does not change what the model computes of a text: where it comes from, how it was trained, how it is served.
# fmt: off
WITHOUT_EFFECT = frozenset([
    "_name_or_path", "architectures", "attention_dropout", "attn_pdrop", "auto_map", "bos_token_id",
    "chunk_size_feed_forward", "classifier_dropout", "dropout", "dtype", "embd_pdrop", "embed_dropout",
    "embedding_dropout", "eos_token_id", "gradient_checkpointing", "hidden_dropout", "id2label", "init_std",
    "initializer_range", "is_decoder", "is_encoder_decoder", "keys_to_ignore_at_inference", "label2id", "layerdrop",
    "model_type", "output_attentions", "output_hidden_states", "pad_token_id", "prefix", "pretraining_tp",
    "problem_type", "resid_dropout", "resid_pdrop", "return_dict", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params", "tokenizer_class",
    "torch_dtype", "transformers.js_config", "transformers_version", "unk_token_id", "use_cache",
])
# fmt: on

# An activation's name in a config -> ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


class Settings:
    """The fields of a `config.json`.

    Args:
        fields: by name.
    """

    def __init__(self, fields: dict[str, Any]):
        self._fields, self._read = fields, set(WITHOUT_EFFECT)

    def __getitem__(self, name: str) -> Any:
        """A field that must be there; ModelError where it is not."""
        if self._fields.get(name) is None:
            raise ModelError("its config lacks {name}", name=name)
        return self.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or what it is where it is not there or null."""
        self._read.add(name)
        found = self._fields.get(name)
        return default if found is None else found

    def num_layers(self, name: str) -> int:
        """The field that says how many layers there are; ModelError where it cannot be so many."""
        check_size(name, self[name], MOST_LAYERS)
        return self[name]

    def only(self, name: str, *known: Any) -> Any:
        """A field of which these values are understood, the first where it is not there.

        Raises:
            ModelError: it has another.
        """
        found = self.get(name, known[0])
        if found not in known:
            raise ModelError("{name} {got!r} is not understood, only {known}", name=name, got=found, known=known[0])
        return found

    def finish(self):
        """ModelError where there is a field that nobody asked for: it might change what is computed."""
        if left := sorted(set(self._fields) - self._read):
            raise ModelError("its config says {name}, which is not understood", name=left[0])
