"""torch.compile for training steps, with its cost hidden and its failures survived.

A step is compiled once for each picture size, for static shapes. While the main process still renders, one helper process a
size compiles the same step and fills the caches on disk; the main process then only reads them. A size whose helper fails or
takes too long runs eagerly.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from common import say
from settings import Size


class Warmers:
    """Helper processes that compile, one for each size. `arguments` makes a helper's command line from its size."""

    def __init__(self, sizes: list[Size], arguments):
        self.logs = Path(tempfile.mkdtemp(prefix="pocket-compile-"))
        self.running: dict[Size, subprocess.Popen] = {}
        # Few compile threads each, since the helpers and the portrait drawing share the cores.
        environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "3", "OMP_NUM_THREADS": "2"}
        for size in sizes:
            with open(self._log(size), "w", encoding="utf-8") as log:
                command = [sys.executable, *arguments(size)]
                self.running[size] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def _log(self, size: Size) -> Path:
        return self.logs / f"{size[0]}x{size[1]}.txt"

    def wait(self, seconds: float) -> set[Size]:
        """Waits so long at most, ends what still runs, and returns the sizes that are compiled."""
        until = time.monotonic() + seconds
        ready = set()
        for size, process in self.running.items():
            try:
                code = process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = "too slow"
            tail = self._log(size).read_text(encoding="utf-8", errors="replace").splitlines()
            if code == 0:
                ready.add(size)
                say(f"compiled {size[0]}x{size[1]}: {tail[-1] if tail else ''}")
            else:
                say(f"NOT compiled {size[0]}x{size[1]} ({code}):\n" + "\n".join(tail[-25:]))
        return ready


class Step:
    """A loss with its gradients: compiled for the sizes in `compiled`, eager for all others.

    `loss` takes tensors and returns a scalar. The first compiled call of a size may fail; then the size becomes eager.
    """

    def __init__(self, loss, parameters: list[torch.Tensor], compiled: set[Size]):
        self.eager = loss
        self.parameters = parameters
        self.compiled = set(compiled)
        self.proven: set[Size] = set()
        self.fast = torch.compile(loss, dynamic=False) if compiled else loss

    def __call__(self, size: Size, *tensors: torch.Tensor) -> torch.Tensor:
        """Adds to the parameters' gradients and returns the loss, detached."""
        if size not in self.compiled:
            return self._run(self.eager, tensors)
        # A helper's cache serves only the memory layout it compiled for, so there is one layout for all.
        for tensor in tensors:
            if not tensor.is_contiguous():
                raise ValueError(f"a step's tensors are contiguous, not {tuple(tensor.shape)} with strides {tensor.stride()}")
        if size in self.proven:
            return self._run(self.fast, tensors)
        began = time.monotonic()
        try:
            loss = self._run(self.fast, tensors)
        except Exception:
            # Whatever went wrong in compiling, eager code computes the same.
            say(f"compiled step of {size[0]}x{size[1]} failed, going on without:\n{traceback.format_exc(limit=-6)}")
            self.compiled.discard(size)
            for parameter in self.parameters:
                parameter.grad = None
            return self._run(self.eager, tensors)
        self.proven.add(size)
        say(f"first compiled step of {size[0]}x{size[1]}: {time.monotonic() - began:.1f} s, {cache_use()}")
        return loss

    def _run(self, function, tensors) -> torch.Tensor:
        loss = function(*tensors)
        loss.backward()
        return loss.detach()


def cache_use() -> str:
    """What of this process's compiling came from the caches on disk so far."""
    from torch._dynamo.utils import counters

    hits, misses = counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"]
    return f"graphs from the cache {hits}, made anew {misses}"


def warm(size: Size, step: Step, tensors: list[torch.Tensor], repeats: int = 0) -> None:
    """What a helper process does: compiles the step; with `repeats`, measures it too. Prints one line."""
    began = time.monotonic()
    step(size, *tensors)
    if size not in step.proven:
        raise SystemExit("the compiled step failed")
    took = time.monotonic() - began
    speed = ""
    if repeats:
        torch.cuda.synchronize()
        began = time.monotonic()
        for _ in range(repeats):
            for parameter in step.parameters:
                parameter.grad = None
            step(size, *tensors)
        torch.cuda.synchronize()
        samples = repeats * tensors[0].shape[0]
        speed = f", {samples / (time.monotonic() - began):.0f} samples/s without the optimizer"
        speed += f", {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
    print(f"compiled in {took:.0f} s{speed}", flush=True)
