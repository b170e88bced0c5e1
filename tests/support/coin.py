"""A small experiment, where other processes find it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Coin:
    """A number a run; run 3 kills its process the first time, where a folder is given; runs after 1 take `seconds`."""

    name: str = "coin"
    bias: float = 0.0
    dies_in: str | None = None
    seconds: float = 0.0

    def settings(self) -> dict[str, Any]:
        return {"bias": self.bias}

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        if self.dies_in is not None and seed.spawn_key == (3,):
            mark = Path(self.dies_in) / "died"
            if not mark.exists():
                mark.touch()
                os._exit(1)
        if seed.spawn_key[0] > 1:
            time.sleep(self.seconds)
        return {"x": self.bias + float(np.random.default_rng(seed).random())}


@dataclass(frozen=True)
class Dying(Coin):
    """An experiment whose process dies in every run."""

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        os._exit(1)
