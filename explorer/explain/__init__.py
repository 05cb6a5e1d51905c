"""How a number comes about: its formula, its inputs, and the same number worked out again."""
