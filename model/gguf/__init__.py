"""GGUF files of llama.cpp: reading, dequantising, their tokenizers, and writing."""
