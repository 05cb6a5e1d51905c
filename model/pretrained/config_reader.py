"""Reader of a Hugging Face `config.json`, field by field, with each family's fields and defaults, and its RoPE."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from model.config import MAX_LAYERS, MAX_SIZE, ModelConfig, RopeScaling, check_size, is_number
from model.errors import LoadingNote, ModelError

_ROPE: dict[str, Any] = {"rope_parameters": None, "rope_scaling": None, "rope_theta": 10000.0}
_ROPE |= {"original_max_position_embeddings": None}
_WINDOWS = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28, "layer_types": None}

# fmt: off
_LLAMA = _ROPE | {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
    "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}
_QWEN = _LLAMA | _WINDOWS | {
    "vocab_size": 151936, "intermediate_size": 22016, "num_key_value_heads": 32, "max_position_embeddings": 32768,
}
_GEMMA = _LLAMA | {
    "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192,
    "hidden_act": "gelu_pytorch_tanh", "attention_bias": False, "use_bidirectional_attention": None,
    "tie_word_embeddings": True,
}
DEFAULTS: dict[str, dict[str, Any]] = {  # model_type -> field -> default
    "llama": _LLAMA | {"attention_bias": False, "mlp_bias": False},
    "mistral": _LLAMA | {
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072, "sliding_window": 4096,
    },
    "qwen2": _QWEN,
    "qwen3": _QWEN | {"head_dim": 128, "attention_bias": False},
    "gemma": _GEMMA,
    "gemma2": _ROPE | {
        "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
        "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "attention_bias": False,
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "layer_types": None, "final_logit_softcapping": 30.0,
        "attn_logit_softcapping": 50.0, "use_bidirectional_attention": None, "tie_word_embeddings": True,
    },
    "gemma3_text": _ROPE | {
        "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
        "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "attention_bias": False,
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "layer_types": None, "sliding_window_pattern": 6,
        "final_logit_softcapping": None, "use_bidirectional_attention": False, "tie_word_embeddings": True,
        "rope_theta": 1e6, "rope_local_base_freq": 1e4,
    },
    "nanochat": _LLAMA | {
        "vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192, "num_hidden_layers": 12,
        "num_attention_heads": 6, "hidden_act": "relu2", "final_logit_softcapping": 15.0, "attention_bias": False,
    },
    "olmo2": _LLAMA | {"vocab_size": 50304, "rms_norm_eps": 1e-5, "attention_bias": False},
    "granite": _LLAMA | {
        "attention_bias": False, "mlp_bias": False, "embedding_multiplier": 1.0, "logits_scaling": 1.0,
        "residual_multiplier": 1.0, "attention_multiplier": 1.0,
    },
    "smollm3": _LLAMA | {
        "vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
        "num_key_value_heads": 4, "max_position_embeddings": 32768, "rope_theta": 2e6, "attention_bias": False,
        "mlp_bias": False, "use_sliding_window": False, "sliding_window": None, "layer_types": None,
        "no_rope_layers": None, "no_rope_layer_interval": 4, "tie_word_embeddings": True,
    },
    "phi": _ROPE | {
        "vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "qk_layernorm": False,
        "tie_word_embeddings": False,
    },
    "phi3": _LLAMA | {
        "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "sliding_window": None,
        "partial_rotary_factor": 1.0,
    },
    "gpt_neox": {
        "vocab_size": 50432, "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44,
        "num_attention_heads": 64, "max_position_embeddings": 2048, "hidden_act": "gelu", "layer_norm_eps": 1e-5,
        "use_parallel_residual": True, "attention_bias": True, "rope_parameters": None, "rope_scaling": None,
        "rotary_emb_base": 10000.0, "rotary_pct": 0.25, "original_max_position_embeddings": None,
        "tie_word_embeddings": False,
    },
    "gpt2": {
        "vocab_size": 50257, "n_embd": 768, "n_inner": None, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False, "tie_word_embeddings": True,
    },
    "gpt_neo": {
        "vocab_size": 50257, "hidden_size": 2048, "intermediate_size": None, "num_layers": 24, "num_heads": 16,
        "max_position_embeddings": 2048, "attention_types": None, "attention_layers": None, "window_size": 256,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
    },
    "opt": {
        "vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "max_position_embeddings": 2048, "activation_function": "relu", "do_layer_norm_before": True,
        "_remove_final_layer_norm": False, "word_embed_proj_dim": None, "enable_bias": True,
        "layer_norm_elementwise_affine": True, "tie_word_embeddings": True,
    },
}

# What some families call a field that others have as well: where a file has both names, this one counts.
ALIASES = {
    "gpt2": {
        "hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    "gpt_neo": {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
}

# Fields in which null means none, or the same number as of another field, instead of the default.
NULL_IS_NONE = frozenset([
    "attn_logit_softcapping", "final_logit_softcapping", "num_key_value_heads", "sliding_window",
])

# What changes nothing of what is computed of a text, in any family: where a file comes from, how its model was trained
# or is served, what else can be made of it. Other fields that are not used are told.
WITHOUT_EFFECT = frozenset([
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal", "_commit_hash",
    "_flash_attn_2_enabled", "_name_or_path", "_num_labels", "_sliding_window_pattern", "activation_dropout",
    "architectures", "attention_dropout", "attn_implementation", "attn_pdrop", "auto_map", "begin_suppress_tokens",
    "bos_token_id", "cache_implementation", "chunk_size_feed_forward", "classifier_dropout",
    "cross_attention_hidden_size", "decoder_start_token_id", "dropout", "dtype", "embd_pdrop", "embed_dropout",
    "embedding_dropout", "eos_token_id", "finetuning_task", "gradient_checkpointing", "hidden_dropout", "id2label",
    "init_std", "initializer_range", "is_decoder", "keys_to_ignore_at_inference", "label2id", "layerdrop", "n_ctx",
    "name_or_path", "num_labels", "output_attentions", "output_hidden_states", "output_past", "pad_token_id", "prefix",
    "pretraining_tp", "problem_type", "reorder_and_upcast_attn", "resid_dropout", "resid_pdrop", "return_dict",
    "sep_token_id", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder", "tie_last_hidden_states",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "unk_token_id",
    "use_bfloat16", "use_cache", "use_return_dict",
    # Generation settings, which older files have here.
    "assistant_confidence_threshold", "assistant_early_exit", "assistant_lookbehind", "bad_words_ids", "constraints",
    "cache_config", "compile_config", "disable_compile", "diversity_penalty", "do_sample", "dola_layers",
    "early_stopping", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff",
    "exponential_decay_length_penalty", "force_words_ids", "forced_bos_token_id", "forced_decoder_ids",
    "forced_eos_token_id", "guidance_scale", "is_assistant", "length_penalty", "low_memory", "max_length",
    "max_matching_ngram_size", "max_new_tokens", "max_time", "min_length", "min_new_tokens", "min_p",
    "no_repeat_ngram_size", "num_assistant_tokens", "num_assistant_tokens_schedule", "num_beam_groups", "num_beams",
    "num_return_sequences", "output_logits", "output_scores", "penalty_alpha", "prefill_chunk_size",
    "prompt_lookup_num_tokens", "remove_invalid_values", "renormalize_logits", "repetition_penalty",
    "return_dict_in_generate", "return_legacy_cache", "sequence_bias", "stop_strings", "suppress_tokens",
    "target_lookbehind", "temperature", "token_healing", "top_h", "top_k", "top_p", "typical_p", "watermarking_config",
])
# fmt: on


# An activation's name in a config -> ours, for a feed-forward without a gate and for one with: the most common is last.
TANH_GELUS = ("gelu_fast", "gelu_accurate", "gelu_python_tanh", "gelu_new", "gelu_pytorch_tanh")  # one formula
ACTIVATIONS = {"gelu_python": "gelu", "gelu": "gelu"} | dict.fromkeys(TANH_GELUS, "gelu_tanh")
ACTIVATIONS |= {"relu": "relu", "relu2": "relu2"}
GATES = {"swish": "swiglu", "silu": "swiglu"} | dict.fromkeys(TANH_GELUS, "geglu")

QUANTIZATIONS = ("quantization_config", "quantization", "compression_config")
HEADS = ("num_attention_heads", "num_heads", "n_head")  # cannot be inferred from the weights' shapes
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
# Fields that a file of any family may have.
COMMON_FIELDS = {"model_type", "is_encoder_decoder", "add_cross_attention", "pruned_heads", "per_layer_config"}
COMMON_FIELDS |= {*QUANTIZATIONS, *EXPERTS}
MAX_NAMES, MAX_NAME_LENGTH = 12, 60  # of fields in one note: a file may have any number, of any length


class HFConfigFields:
    """The fields of a `config.json`, or of an object in it.

    Args:
        fields: by name. If they name a known `model_type`, only the fields that its code reads are visible, and
            missing ones have transformers' default.
        prefix: put before the names of fields in messages.
    """

    def __init__(self, fields: Mapping[str, Any], prefix: str = ""):
        kind = fields.get("model_type")
        kind = kind if isinstance(kind, str) else None
        self._aliases = ALIASES.get(kind, {})
        self._fields = {name: value for name, value in fields.items() if name not in self._aliases}
        self._fields |= {self._aliases[name]: value for name, value in fields.items() if name in self._aliases}
        self._present, self._prefix = {name for name, value in self._fields.items() if value is not None}, prefix
        self._defaults = DEFAULTS.get(kind)
        if self._defaults is not None:
            self._fields = self._defaults | {
                name: value
                for name, value in self._fields.items()
                if name in COMMON_FIELDS | set(self._defaults) and (value is not None or name in NULL_IS_NONE)
            }
        self._read: set[str] = set() if self._defaults is None else COMMON_FIELDS | set(self._defaults)
        self._nested: list[HFConfigFields] = []

    def __getitem__(self, name: str) -> Any:
        """Return a required field; ModelError if it is missing."""
        value = self.get(name)
        if value is None:
            raise ModelError("its config lacks {name}", name=self._full_name(name))
        return value

    def _full_name(self, name: str) -> str:
        """Return the family's name of a field, for messages."""
        return f"{self._prefix}{self._aliases.get(name, name)}"

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` if it is missing or null."""
        if self._defaults is None:
            self._read.add(name)
        value = self._fields.get(self._aliases.get(name, name))
        return default if value is None else value

    def read_all(self) -> dict[str, Any]:
        """Return all fields and mark them as read."""
        self._read |= set(self._fields)
        return dict(self._fields)

    def reads(self, name: str) -> bool:
        """Return True if the family's code reads a field."""
        return self._defaults is not None and name in self._defaults

    def size(self, name: str, max_size: int = MAX_SIZE) -> int | None:
        """Return a count, None if missing; ModelError unless it is an integer from 1 to `max_size`."""
        value = self.get(name)
        if isinstance(value, float) and value.is_integer():  # as other languages write integers
            value = int(value)
        if value is not None:
            check_size(self._full_name(name), value, max_size)
        return value

    def num_layers(self, name: str) -> int:
        """Return the field with the number of layers; ModelError if it is not valid."""
        return self.size(name, MAX_LAYERS)

    def number(self, name: str) -> float | None:
        """Return a positive number, None if missing; ModelError if it is anything else."""
        value = self.get(name)
        if value is not None and not (is_number(value) and 0 < value < float("inf")):
            raise ModelError("{name} must be a positive number, got {got!r}", name=self._full_name(name), got=value)
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean field, False if missing; ModelError if it is anything else."""
        value = self.get(name, False)
        if not isinstance(value, bool) and value not in (0, 1):
            raise ModelError("{name} must be true or false, got {got!r}", name=self._full_name(name), got=value)
        return bool(value)

    def names(self, name: str) -> list[str] | None:
        """Return a list of strings, None if missing; ModelError if it is anything else."""
        value = self.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ModelError("{name} must be a list of words, got {got!r}", name=self._full_name(name), got=value)
        return value

    def read_object(self, name: str, fields: Any) -> "HFConfigFields":
        """Return a reader of an object among the fields; ModelError if it is none.

        Its unused fields are reported as `name`.field.
        """
        if not isinstance(fields, dict):
            raise ModelError(
                "{name} must be an object of named settings, got {got!r}", name=self._full_name(name), got=fields
            )
        self._nested.append(HFConfigFields({k: v for k, v in fields.items() if k != "model_type"}, f"{name}."))
        return self._nested[-1]

    def get_supported(self, name: str, *supported: Any) -> Any:
        """Return a field that may have only these values; the first is the default.

        Raises:
            ModelError: it has another.
        """
        value = self.get(name, supported[0])
        if value not in supported:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}",
                name=self._full_name(name),
                got=value,
                known=supported[0],
            )
        return value

    def activation(self, name: str, our_names: Mapping[str, str]) -> str:
        """Return our name of an activation, from `ACTIVATIONS` or `GATES`; ModelError if it is not there."""
        hf_name = self[name]
        if not isinstance(hf_name, str) or hf_name not in our_names:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}", name=name, got=hf_name, known=", ".join(our_names)
            )
        return our_names[hf_name]

    def check_supported(self) -> None:
        """Raise ModelError if a field has a value that is supported for no family."""
        for name in QUANTIZATIONS:
            if quantization := self.get(name):
                details = quantization if isinstance(quantization, dict) else {}
                raise ModelError(
                    "its weights are quantized ({name}: {how}), which is not read here: open the model that they were "
                    "made from, or save it anew after transformers’ model.dequantize()",
                    name=name,
                    how=details.get("quant_method")
                    or details.get("quant_algo")
                    or f"{details.get('bits', 'few')} bits",
                )
        if self.get("pruned_heads"):
            raise ModelError(
                "{name} {got!r} is not understood, only {known}",
                name="pruned_heads",
                got=self.get("pruned_heads"),
                known="{}",
            )
        if self.get("per_layer_config"):
            raise ModelError("its config says {name}, which is not understood", name="per_layer_config")
        for name in ("is_encoder_decoder", "add_cross_attention"):
            self.get_supported(name, False)
        for name in EXPERTS:
            self.get_supported(name, 1, 0)

    def unused_names(self) -> list[str]:
        """Return the names of non-null fields that nothing read, sorted."""
        unread = [f"{self._prefix}{name}" for name in self._present - self._read - WITHOUT_EFFECT]
        return sorted({*unread, *(name for nested in self._nested for name in nested.unused_names())})

    def notes(self) -> tuple[LoadingNote, ...]:
        """Return notes for the user on defaults that were assumed and fields that were not used."""
        notes = [
            LoadingNote(
                "config.json leaves out {name}, taken as {value}, as by transformers", name=name, value=self[name]
            )
            for name in HEADS
            if self.reads(name) and name not in self._present
        ]
        names = [shorten_name(name) for name in self.unused_names()]
        names_text = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        if len(names) == 1:
            notes.append(LoadingNote("1 field of config.json was not used: {names}", names=names_text))
        elif names:
            notes.append(
                LoadingNote("{count} fields of config.json were not used: {names}", count=len(names), names=names_text)
            )
        return tuple(notes)


def shorten_name(name: str) -> str:
    """Return a field's name, shortened and printable, for a line of a log."""
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"


class Family:
    """Reading of the configs and weights of a family of models; the base class of those in this folder."""

    NAMES: Mapping[str, str]  # name of a module in the files -> ours, with * for the layer
    PREFIX = "model."  # before all names but lm_head; files may leave it out

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse the fields of a config; ModelError if a value is not supported."""
        raise NotImplementedError

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours, by name."""
        return {name: weight}

    @staticmethod
    def weight_multiplier(name: str, settings: HFConfigFields, config: ModelConfig) -> float:
        """Return the factor to multiply into one of our weights."""
        return 1.0

    @staticmethod
    def default_weights(config: ModelConfig) -> dict[str, Tensor]:
        """Return the weights that the files lack."""
        return {}


def parse_sizes(settings: HFConfigFields, feed_forward: str = "intermediate_size") -> dict[str, Any]:
    """Return the fields of our config that all families have: sizes, and whether the embeddings are tied.

    Args:
        feed_forward: the family's name for the width of the feed-forward, 4 times the stream's if it is null.
    """
    d_model = settings.size("hidden_size")
    return {
        "vocab_size": settings.size("vocab_size"),
        "context_length": settings.size("max_position_embeddings"),
        "d_model": d_model,
        "num_layers": settings.num_layers("num_hidden_layers"),
        "num_heads": settings.size("num_attention_heads"),
        "d_ff": settings.size(feed_forward) or 4 * d_model,
        "num_kv_heads": settings.size("num_key_value_heads"),
        "head_dim": settings.size("head_dim"),
        "tie_embeddings": settings.flag("tie_word_embeddings"),
    }


def parse_rope(settings: HFConfigFields, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields of our config of the rotation: θ, layout, scaling, rotated dimensions per head, None for all.

    Older files have them as fields of their own. `parameters` replace those of the config.

    Raises:
        ModelError: the kind of scaling is not supported, or lacks a number that it needs.
    """
    name = "rope_scaling" if settings.get("rope_scaling") else "rope_parameters"
    rope = settings.read_object(name, (settings.get(name) or {}) if parameters is None else parameters)
    theta = rope.number("rope_theta") or settings.number("rope_theta") or settings.number("rotary_emb_base")
    d_head = settings.size("head_dim") or settings.size("hidden_size") // settings.size("num_attention_heads")
    rotary_dim = rotary_width(settings, rope, d_head)
    kind = rope.get("rope_type") or rope.get("type", "default")
    rope.get("type")
    if kind == "su" or (kind == "yarn" and settings["model_type"] == "phi3"):  # as LongRoPE was called at first
        kind = "longrope"
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ModelError(
            "rope_type {got!r} is not understood, only {known}", got=kind, known=", ".join(sorted(SCALINGS))
        )
    return {
        "rope_theta": theta,
        "rope_layout": "half_split",
        "rotary_dim": rotary_dim,
        "rope_scaling": SCALINGS[kind](rope, settings),
    }


def rotary_width(settings: HFConfigFields, rope: HFConfigFields, d_head: int) -> int | None:
    """Return the number of rotated dimensions per head; None for all, unless the family has a field for the share.

    Raises:
        ModelError: it is more than the head's width, 0, or odd.
    """
    for name in ("partial_rotary_factor", "rotary_pct"):
        if settings.reads(name):
            share = rope.number("partial_rotary_factor") or settings.number(name)
            width = int(d_head * share)
            if width % 2 or not 0 < width <= d_head:
                raise ModelError(
                    "{name} {got!r} turns {width} of a head’s {all} dimensions: it must be an even number of them",
                    name=name,
                    got=share,
                    width=width,
                    all=d_head,
                )
            return width if width < d_head else None
    return None


def limit_longrope_context(config: ModelConfig) -> ModelConfig:
    """Limit the context to the length that LongRoPE's short factors are for.

    One token more would change the rotation of all positions.
    """
    scaling = config.rope_scaling
    if scaling is None or scaling.kind != "longrope":
        return config
    return replace(config, context_length=min(config.context_length, scaling.original_context_length))


def _read_linear(rope: HFConfigFields, settings: HFConfigFields) -> RopeScaling:
    return RopeScaling(kind="linear", factor=rope["factor"])


def _read_llama3(rope: HFConfigFields, settings: HFConfigFields) -> RopeScaling:
    return RopeScaling(
        kind="llama3",
        factor=rope["factor"],
        low_frequency_factor=rope["low_freq_factor"],
        high_frequency_factor=rope["high_freq_factor"],
        original_context_length=_original_context_length(rope, settings),
    )


def _read_yarn(rope: HFConfigFields, settings: HFConfigFields) -> RopeScaling:
    original = _original_context_length(rope, settings)
    factor = rope.number("factor") or settings.size("max_position_embeddings") / original
    fast, slow = rope.number("beta_fast") or 32, rope.number("beta_slow") or 1
    numerator, denominator = rope.number("mscale"), rope.number("mscale_all_dim")
    attention_factor = rope.number("attention_factor")
    if attention_factor is None and numerator and denominator:
        attention_factor = _yarn_scale(factor, numerator) / _yarn_scale(factor, denominator)
    elif attention_factor is None:
        attention_factor = _yarn_scale(factor)
    return RopeScaling(
        kind="yarn",
        factor=factor,
        low_frequency_factor=slow,
        high_frequency_factor=fast,
        original_context_length=original,
        rounds_ramp=rope.get("truncate", True),
        attention_factor=attention_factor,
    )


def _yarn_scale(factor: float, weight: float = 1.0) -> float:
    """Return 0.1 ln s + 1 (Peng et al. 2023, eq. 22), its slope times `weight`."""
    return 0.1 * weight * math.log(factor) + 1.0


def _read_longrope(rope: HFConfigFields, settings: HFConfigFields) -> RopeScaling:
    original = _original_context_length(rope, settings)
    rope.get("long_factor")  # of texts longer than `limit_longrope_context` lets be
    factor = rope.number("factor") or settings.size("max_position_embeddings") / original
    attention_factor = rope.number("attention_factor")
    if attention_factor is None:
        attention_factor = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    return RopeScaling(
        kind="longrope",
        factor=max(factor, 1.0),
        original_context_length=original,
        pair_factors=tuple(rope["short_factor"]),
        attention_factor=attention_factor,
    )


def _ignore_dynamic(rope: HFConfigFields, settings: HFConfigFields) -> None:
    """Return None: dynamic NTK changes θ only for texts longer than max_position_embeddings.

    This model reads no longer ones.
    """
    rope.get("factor")


SCALINGS: dict[str, Callable[[HFConfigFields, HFConfigFields], RopeScaling | None]] = {
    "default": lambda found, settings: None,
    "linear": _read_linear,
    "dynamic": _ignore_dynamic,
    "llama3": _read_llama3,
    "yarn": _read_yarn,
    "longrope": _read_longrope,
}


def _original_context_length(rope: HFConfigFields, settings: HFConfigFields) -> int:
    """Return the positions in training; as in transformers, the config's field takes precedence over the rotation's."""
    rope_length = rope.size("original_max_position_embeddings")
    config_length = settings.size("original_max_position_embeddings")
    length = config_length or rope_length or settings.size("max_position_embeddings")
    if length < 2:
        raise ModelError("{name} must be at least 2, got {got}", name="original_max_position_embeddings", got=length)
    return length
