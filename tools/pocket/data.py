"""Rendered portraits in chunks: drawn and captioned in worker processes, rendered on the device, all of a chunk one size.

Pictures are never mirrored: the side that the light comes from and where a head turns are things that captions name.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import draw
from common import say
from render import render
from settings import STREAMS, Settings, Size


@dataclass
class Chunk:
    """Portraits of one size. `pictures` is uint8 `[n, height, width, 3]` on the device, `ids` `[n, captions, 77]` or None."""

    size: Size
    portraits: list
    pictures: torch.Tensor
    ids: np.ndarray | None


class Source:
    """Renders streams of portraits. A context manager, since it owns worker processes (none with `workers` 0)."""

    def __init__(self, settings: Settings, device: torch.device, tokenizer_file: Path | None, workers: int | None = None):
        self.settings = settings
        self.device = device
        self.tokenizer_file = None if tokenizer_file is None else str(tokenizer_file)
        if workers is None:
            # Compiling has most of the cores; five processes draw faster than the GPU renders.
            workers = min(5, (os.cpu_count() or 1) // 3) if device.type == "cuda" else 0
        # Fresh processes: a fork of one that already uses the GPU would break.
        self.pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) if workers > 0 else None

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)

    def _drawn(self, jobs):
        """Results of `draw.job`, in order, with a few dozen in the works ahead."""
        if self.pool is None:
            yield from (draw.job(*args) for args in jobs)
            return
        jobs, waiting = iter(jobs), deque()
        for args in jobs:
            waiting.append(self.pool.submit(draw.job, *args))
            if len(waiting) >= 48:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def chunks(self, stream: int, count: int, captions: int = 0, size: Size | None = None, seconds: float | None = None):
        """Yields chunks until `count` portraits are rendered or `seconds` are over (at least one of each size is).

        Sizes follow the settings' pattern unless `size` names one.
        """
        batch = self.settings.render_batch
        pattern = [size] if size else self.settings.pattern
        limit = self.settings.render_seconds if seconds is None else seconds
        starts = range(0, count, batch)
        jobs = [(stream, start, min(batch, count - start), captions, self.tokenizer_file) for start in starts]
        began, done = time.monotonic(), 0
        for number, (portraits, ids) in enumerate(self._drawn(jobs)):
            width, height = pattern[number % len(pattern)]
            with torch.no_grad():
                pictures = render(portraits, width, height, device=self.device.type)
            done += len(portraits)
            yield Chunk((width, height), portraits, pictures, ids)
            if time.monotonic() - began > limit and number + 1 >= len(pattern):
                break
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        taken = time.monotonic() - began
        say(f"stream {stream}: {done} of {count} pictures in {taken:.1f} s, {done / taken:.0f}/s, what was done with them included")

    def by_size(self, stream: int, count: int, seconds: float | None = None) -> dict[Size, tuple[list, torch.Tensor]]:
        """All portraits of a stream with their pictures, gathered by size."""
        gathered: dict[Size, list[Chunk]] = {}
        for chunk in self.chunks(stream, count, seconds=seconds):
            gathered.setdefault(chunk.size, []).append(chunk)
        return {
            size: ([p for chunk in parts for p in chunk.portraits], torch.cat([chunk.pictures for chunk in parts]))
            for size, parts in gathered.items()
        }

    def held_out(self, stream: int, size: Size, count: int) -> tuple[list, torch.Tensor]:
        """`count` portraits of one size, numbered apart from those of other sizes, with their pictures."""
        # Each size starts at a million of its own.
        offset = 1_000_000 * (1 + self.settings.sizes.index(size))
        portraits, pictures = [], []
        for start in range(0, count, self.settings.render_batch):
            some, _ = draw.job(stream, offset + start, min(self.settings.render_batch, count - start), 0, None)
            portraits += some
            pictures.append(render(some, *size, device=self.device.type))
        return portraits, torch.cat(pictures)


def to_signed(pictures: torch.Tensor) -> torch.Tensor:
    """uint8 `[n, h, w, 3]` to f32 `[n, 3, h, w]` in −1..1, channels last in memory."""
    return pictures.permute(0, 3, 1, 2).float() / 127.5 - 1.0


def to_bytes(pictures: torch.Tensor) -> torch.Tensor:
    """The inverse of `to_signed`, rounded and clamped."""
    return ((pictures.float() + 1.0) * 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def stream_of(name: str, stage: int = 0) -> int:
    """The number of a stream by its name in the settings."""
    return STREAMS[name] + stage
