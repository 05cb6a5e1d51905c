"""From a question to arrays: a model's run with every value by its name, and what keeps runs."""
