"""Whole training steps as CUDA graphs: forward, backward, clipping, AdamW and the moving average in one launch.

The networks are small and have 700 parameters, so that a step launched kernel by kernel waits for Python. After a few plain
steps of a size (compilers, cuDNN's trials and Adam's state need them) its step is recorded once and replayed from then on. If
recording fails, all steps stay plain. Used by `train_unet.py` and `profiling.py`.
"""

from __future__ import annotations

import contextlib
import time
import traceback

import torch

from common import say
from compiling import Step
from settings import Size
from training import Loop


class Recorder:
    """Records device work into CUDA graphs that share one memory pool.

    Sharing is sound in any order of replays: a graph reads nothing that another one left in the pool.
    """

    def __init__(self):
        self.pool = torch.cuda.graph_pool_handle()

    def record(self, work):
        """Records `work` without running it; returns what runs it."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Recorded on the stream that all training runs on: autograd remembers the stream of each parameter's first use.
        # Other threads may go on using the GPU meanwhile.
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            work()
        return graph.replay


@contextlib.contextmanager
def own_stream(device: torch.device):
    """Runs a training on a stream of its own on a GPU, since the default one cannot be recorded."""
    if device.type != "cuda":
        yield
        return
    stream, before = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(before)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        before.wait_stream(stream)


class Stepper:
    """Training steps of several sizes, recorded where that is possible. `recorder` None keeps them plain."""

    # Plain steps of a size before it is recorded.
    PLAIN = 3

    def __init__(self, step: Step, loop: Loop, recorder):
        self.step, self.loop, self.recorder = step, loop, recorder
        self.inputs: dict[Size, list[torch.Tensor]] = {}
        self.plain: dict[Size, int] = {}
        self.replays: dict[Size, object] = {}

    def __call__(self, size: Size, tensors: list[torch.Tensor]) -> None:
        """One step on a batch: gradients, weights, average; counted in the loop."""
        if size not in self.inputs:
            self.inputs[size] = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in tensors]
        for mine, given in zip(self.inputs[size], tensors, strict=True):
            mine.copy_(given)
        self.loop.prepare()
        if self.recorder is not None and size not in self.replays and self.plain.get(size, 0) >= self.PLAIN:
            self._record(size)
        if size in self.replays:
            self.replays[size]()
        else:
            self.plain[size] = self.plain.get(size, 0) + 1
            self.loop.clear()
            self._work(size)
            self.loop.clear()
        self.loop.counted(tensors[0].shape[0])

    def _work(self, size: Size) -> None:
        self.loop.apply(self.step(size, *self.inputs[size]))

    def _record(self, size: Size) -> None:
        began = time.monotonic()
        # With no gradients there, backward makes them in the graph's own memory and each replay writes them anew.
        self.loop.clear()
        try:
            self.replays[size] = self.recorder.record(lambda: self._work(size))
            say(f"recorded the step of {size[0]}x{size[1]} in {time.monotonic() - began:.1f} s")
        except Exception:
            say(f"recording the step of {size[0]}x{size[1]} failed, all stay plain:\n{traceback.format_exc(limit=-6)}")
            self.recorder = None
            self.replays.clear()
            self.loop.clear()
