"""Portraits and their captions by number: the same number of the same stream is the same portrait on every machine.

Needs no torch, so that worker processes start quickly. `data.py` calls `job` in them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

import attributes
import captions
from settings import SEED
from tokenizer import LENGTH, Tokenizer


def generator(stream: int, index: int, purpose: int = 0) -> np.random.Generator:
    """The random numbers of one portrait of a stream; `purpose` 0 draws the portrait, 1 its captions."""
    return np.random.default_rng([SEED, stream, index, purpose])


def portrait(stream: int, index: int) -> attributes.Portrait:
    """Portrait number `index` of a stream."""
    return attributes.sample(generator(stream, index))


@lru_cache(maxsize=1)
def _tokenizer(path: str) -> Tokenizer:
    return Tokenizer.load(Path(path))


def job(stream: int, start: int, count: int, each: int, tokenizer_file: str | None):
    """Portraits `start..start+count` and, if `each` is above 0, token ids `[count, each, 77]` of as many captions (uint16)."""
    portraits = [portrait(stream, start + i) for i in range(count)]
    if not each:
        return portraits, None
    tokenizer = _tokenizer(tokenizer_file)
    ids = np.empty((count, each, LENGTH), np.uint16)
    for i, one in enumerate(portraits):
        rng = generator(stream, start + i, purpose=1)
        for k in range(each):
            ids[i, k] = tokenizer.padded(captions.caption(one, rng))
    return portraits, ids


def corpus(stream: int, count: int):
    """Captions to learn a vocabulary from: as trained on, and every tenth a full one."""
    for i in range(count):
        rng = generator(stream, i, purpose=1)
        one = portrait(stream, i)
        yield captions.full_caption(one, rng) if i % 10 == 0 else captions.caption(one, rng)
