"""How many cores a product takes."""

import torch

from model.config import ModelConfig
from model.counting import num_parameters

CORES = torch.get_num_threads()  # that PyTorch would take
FEW_PARAMETERS = 100_000_000  # a second core makes products of so few no faster


def set_threads(config: ModelConfig):
    """Have products of all threads that begin from now on take one core where the model is small, else all.

    Where several visitors compute at a time, each product's threads would wait for those of others. The number stays as
    it is: products round otherwise with another, and two runs that are the same would differ.
    """
    torch.set_num_threads(1 if num_parameters(config) < FEW_PARAMETERS else CORES)
