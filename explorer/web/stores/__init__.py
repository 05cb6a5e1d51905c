"""Stores for bytes shared by several processes, such as caches; one module per backend."""
