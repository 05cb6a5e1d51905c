"""The fields that transformers reads from each family's `config.json`, with their defaults.

A field that is not listed for a family has no effect on transformers' computation. Older names that transformers
still reads are listed, too, and fields that its classes do not declare but its models read. Checked against
transformers by `tests/model/pretrained/test_fields.py`.
"""

from typing import Any

_ROPE: dict[str, Any] = {"rope_parameters": None, "rope_scaling": None, "rope_theta": 10000.0}
_ROPE |= {"original_max_position_embeddings": None}
_WINDOWS = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28, "layer_types": None}

# fmt: off
DEFAULTS: dict[str, dict[str, Any]] = {  # model_type -> field -> default
    "llama": _ROPE | {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": False,
    },
    "mistral": _ROPE | {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": None, "max_position_embeddings": 131072,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "sliding_window": 4096, "tie_word_embeddings": False,
    },
    "qwen2": _ROPE | _WINDOWS | {
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": None, "max_position_embeddings": 32768,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    },
    "qwen3": _ROPE | _WINDOWS | {
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32768,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_bias": False, "tie_word_embeddings": False,
    },
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
    "nanochat": _ROPE | {
        "vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192, "num_hidden_layers": 12,
        "num_attention_heads": 6, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "relu2", "rms_norm_eps": 1e-6, "final_logit_softcapping": 15.0, "attention_bias": False,
        "tie_word_embeddings": False,
    },
    "olmo2": _ROPE | {
        "vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "attention_bias": False, "tie_word_embeddings": False,
    },
    "granite": _ROPE | {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_bias": False, "mlp_bias": False,
        "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0,
        "tie_word_embeddings": False,
    },
    "smollm3": _ROPE | {
        "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
        "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": None, "max_position_embeddings": 32768,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 2e6, "attention_bias": False, "mlp_bias": False,
        "use_sliding_window": False, "sliding_window": None, "layer_types": None, "no_rope_layers": None,
        "no_rope_layer_interval": 4, "tie_word_embeddings": True,
    },
    "phi": _ROPE | {
        "vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
        "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "qk_layernorm": False,
        "tie_word_embeddings": False,
    },
    "phi3": _ROPE | {
        "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096, "hidden_act": "silu", "rms_norm_eps": 1e-5, "sliding_window": None,
        "partial_rotary_factor": 1.0, "tie_word_embeddings": False,
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
