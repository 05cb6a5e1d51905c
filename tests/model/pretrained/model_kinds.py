"""Small models of every supported family, for transformers: class name and config."""

SIZES = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 48}
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
THETA = {"rope_type": "default", "rope_theta": 100.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 24}
RAMP = {"beta_fast": 6, "beta_slow": 0.5, "truncate": False, "mscale": 0.8, "mscale_all_dim": 0.3}
LONG = {"rope_type": "longrope", "rope_theta": 100.0, "long_factor": [4.0] * 4, "partial_rotary_factor": 1.0}
LONG |= {"short_factor": [1.0, 1.5, 2.5, 7.0], "original_max_position_embeddings": 24}
LONG_HALF = LONG | {"partial_rotary_factor": 0.5, "short_factor": [1.2, 3.0], "long_factor": [2.0, 4.0]}
GPT2 = {"vocab_size": 300, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 48}
OPT = {"vocab_size": 300, "hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 56, "num_hidden_layers": 3}
OPT |= {"num_attention_heads": 4, "max_position_embeddings": 48}
GRANITE = {"embedding_multiplier": 3.0, "logits_scaling": 5.0}
GRANITE |= {"residual_multiplier": 0.3, "attention_multiplier": 0.7}
NEO = {"vocab_size": 300, "hidden_size": 32, "num_layers": 3, "num_heads": 4, "max_position_embeddings": 48}
NEO |= {"attention_types": [[["global", "local"], 1], [["global"], 1]], "window_size": 5}
NEOX = SIZES | {"num_attention_heads": 2, "max_position_embeddings": 48}
NEOX |= {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.25}}
PHI = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.25}}
HALF = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
SMOL_WINDOWS = {"use_sliding_window": True, "sliding_window": 7, "tie_word_embeddings": False}
FROM_LAYER_1 = {"max_window_layers": 1}
GEMMA = SIZES | HEADS | {"head_dim": 14, "sliding_window": 7, "query_pre_attn_scalar": 20}
CAPS = {"attn_logit_softcapping": 0.5, "final_logit_softcapping": 1.5}  # so low that they matter
GEMMA3 = GEMMA | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
TWO_THETAS = {"full_attention": THETA, "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}
TWO_THETAS_SLOWED = TWO_THETAS | {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}
KINDS = {
    "Llama 2": ("Llama", SIZES | HEADS),
    "Llama 3.1": ("Llama", SIZES | HEADS | {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "Llama, YaRN": ("Llama", SIZES | HEADS | {"rope_parameters": YARN}),
    "Llama, YaRN with a ramp of its own": ("Llama", SIZES | HEADS | {"rope_parameters": YARN | RAMP, "head_dim": 20}),
    "Llama, dynamic": ("Llama", SIZES | HEADS | {"rope_parameters": THETA | {"rope_type": "dynamic", "factor": 4.0}}),
    "Llama, LongRoPE": ("Llama", SIZES | HEADS | {"rope_parameters": LONG | {"attention_factor": 1.3}}),
    "Llama with biases": ("Llama", SIZES | HEADS | {"attention_bias": True, "mlp_bias": True}),
    "Llama with biases of the attention": ("Llama", SIZES | HEADS | {"attention_bias": True}),
    "Llama with biases of the feed-forward": ("Llama", SIZES | HEADS | {"mlp_bias": True}),
    "Mistral": ("Mistral", SIZES | HEADS | {"sliding_window": 7}),
    "Qwen2, windows": ("Qwen2", SIZES | HEADS | {"sliding_window": 7, "use_sliding_window": True} | FROM_LAYER_1),
    "Qwen2": ("Qwen2", SIZES | HEADS | {"tie_word_embeddings": True}),
    "Qwen3": ("Qwen3", SIZES | HEADS | {"head_dim": 14}),
    "Qwen3 with biases of the attention": ("Qwen3", SIZES | HEADS | {"head_dim": 14, "attention_bias": True}),
    "GPT-2": ("GPT2", GPT2),
    "GPT-2, ReLU": ("GPT2", GPT2 | {"activation_function": "relu", "n_inner": 40}),
    "OPT": ("OPT", OPT),
    "OPT, norms after": ("OPT", OPT | {"do_layer_norm_before": False}),
    "OPT, no biases": ("OPT", OPT | {"enable_bias": False}),
    "GPT-2, scores as they are": ("GPT2", GPT2 | {"scale_attn_weights": False}),
    "Llama, GEGLU": ("Llama", SIZES | HEADS | {"hidden_act": "gelu_new"}),
    "Phi": ("Phi", SIZES | HEADS | {"num_attention_heads": 2, "num_key_value_heads": 1} | PHI),
    "Phi, half turned": ("Phi", SIZES | HEADS),
    "Phi-3": ("Phi3", SIZES | HEADS | {"sliding_window": 9}),
    "Phi-3, half turned": ("Phi3", SIZES | HEADS | {"rope_parameters": HALF}),
    "Phi-3, LongRoPE": ("Phi3", SIZES | HEADS | {"rope_parameters": LONG, "original_max_position_embeddings": 24}),
    "Phi-3, LongRoPE, half turned": (
        "Phi3",
        SIZES | HEADS | {"rope_parameters": LONG_HALF, "original_max_position_embeddings": 24},
    ),
    "Granite": ("Granite", SIZES | HEADS | GRANITE | {"attention_bias": True, "mlp_bias": True}),
    "Granite, tied": ("Granite", SIZES | HEADS | GRANITE | {"tie_word_embeddings": True}),
    "Gemma": ("Gemma", SIZES | HEADS | {"head_dim": 14}),
    "Gemma 2": ("Gemma2", GEMMA | CAPS),
    "Gemma 2, no caps": ("Gemma2", GEMMA | dict.fromkeys(CAPS) | {"tie_word_embeddings": False, "head_dim": 20}),
    "Gemma 2 with biases of the attention": ("Gemma2", GEMMA | {"attention_bias": True}),
    "Gemma 3": ("Gemma3", GEMMA3 | {"rope_parameters": TWO_THETAS}),
    "Gemma 3, slowed": ("Gemma3", GEMMA3 | {"rope_parameters": TWO_THETAS_SLOWED, "final_logit_softcapping": 1.5}),
    "nanochat": ("NanoChat", SIZES | HEADS | {"rope_parameters": THETA, "final_logit_softcapping": 1.5}),
    "OLMo 2": ("Olmo2", SIZES | HEADS | {"rope_parameters": THETA, "rms_norm_eps": 1e-3}),
    "OLMo 2, tied": ("Olmo2", SIZES | HEADS | {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "OLMo 2 with biases of the attention": ("Olmo2", SIZES | HEADS | {"attention_bias": True}),
    "SmolLM3": ("SmolLM3", SIZES | HEADS | {"no_rope_layers": [1, 0, 1], "rope_parameters": THETA}),
    "SmolLM3, windows": ("SmolLM3", SIZES | HEADS | {"no_rope_layer_interval": 3} | SMOL_WINDOWS),
    "GPT-Neo": ("GPTNeo", NEO),
    "GPT-NeoX": ("GPTNeoX", NEOX),
    "GPT-NeoX without biases of the attention": ("GPTNeoX", NEOX | {"attention_bias": False}),
    "GPT-NeoX, YaRN": ("GPTNeoX", NEOX | {"rope_parameters": YARN | {"partial_rotary_factor": 0.5}}),
    "GPT-NeoX, in turn": ("GPTNeoX", NEOX | {"use_parallel_residual": False}),
}
