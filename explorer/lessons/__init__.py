"""Teaching material: lessons, glossary, example prompts, and texts that explain predictions."""
