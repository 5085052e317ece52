"""How fast a UNet training step is at the native size, and where its time goes: plain or compiled, launched or recorded.

`train.py --stage profile` prints one line a variant and a table of kernels. Each variant has its own try and share of the time,
so that one that fails or is slow to compile costs only itself.
"""

from __future__ import annotations

import time
import traceback
from pathlib import Path

import torch

from common import say
from compiling import Step
from graphs import Recorder, Stepper, own_stream
from settings import Settings
from tokenizer import Tokenizer
from train_unet import Noiser, example, prepared, warmers_of
from training import Loop, Schedule

# How long a variant is measured.
MEASURED = 4.0


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _variant(
    settings: Settings, device: torch.device, batch: int, compiled: bool, recorded: bool, seconds: float,
    vocabulary: int,
):  # fmt: skip
    """Sets a variant up, measures it, and prints a line. Returns a function that makes one more step."""
    size = settings.sizes[0]
    name = f"{'compiled' if compiled else 'eager'}, {'recorded' if recorded else 'launched'}, batch {batch}"
    began = time.monotonic()
    model, loss, parameters = prepared(vocabulary, device)
    step = Step(loss, parameters, {size} if compiled else set())
    loop = Loop(name, model, Schedule(1e-4, 1e6), device, every=1e9)
    stepper = Stepper(step, loop, Recorder() if recorded else None)
    noiser, bucket = Noiser(device), example(size, vocabulary, device)
    empty = bucket.ids[0, 0].long()

    def once() -> None:
        stepper(size, noiser.batch(bucket, batch, empty))

    for _ in range(Stepper.PLAIN + 2):
        once()
    _wait(device)
    ready = time.monotonic()
    # Each round ends with a wait, so that the queue does not run ahead of the clock.
    rounds = 0
    while time.monotonic() - ready < min(MEASURED, seconds):
        for _ in range(5):
            once()
        _wait(device)
        rounds += 1
    took = (time.monotonic() - ready) / (5 * rounds)
    kept = "" if not recorded or stepper.replays else ", NOT RECORDED"
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    say(f"{name}{kept}: {batch / took:.0f} samples/s, {1000 * took:.1f} ms a step, set up in {ready - began:.1f} s, {memory:.1f} GiB")
    return once


def _kernels(device: torch.device, once) -> None:
    """Prints the kernels that two steps spend most time in."""
    from torch.profiler import ProfilerActivity, profile

    activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as seen:
        for _ in range(2):
            once()
        _wait(device)
    key = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(seen.key_averages().table(sort_by=key, row_limit=15, max_name_column_width=90), flush=True)


def run(settings: Settings, device: torch.device, seconds: float, compile_: bool, state: Path) -> None:
    """Measures all variants that fit into so many seconds.

    Helpers compile meanwhile for both batch sizes, just as for the training, which finds their caches if it runs on the same
    machine next; a variant that is not compiled in time is left out.
    """
    until = time.monotonic() + seconds
    file = state / "tokenizer.json"
    vocabulary = len(Tokenizer.load(file)) if file.exists() else 1058
    batches = (settings.unet_batch, 2 * settings.unet_batch)
    warmers = {batch: warmers_of(settings.sizes[:1], vocabulary, batch) for batch in batches} if compile_ else {}

    def measure(batch: int, compiled: bool, recorded: bool) -> None:
        left = until - time.monotonic()
        if left < 3.0:
            say(f"no time left: batch {batch}, compiled {compiled}, recorded {recorded}")
            return
        try:
            once = _variant(settings, device, batch, compiled, recorded, left, vocabulary)
            # Launched steps name their kernels best: one table for eager code and one for compiled code.
            if not recorded and batch == batches[0]:
                _kernels(device, once)
        except Exception:
            say(f"a variant failed:\n{traceback.format_exc(limit=-6)}")

    with own_stream(device):
        for batch in batches:
            for recorded in (False, True):
                measure(batch, False, recorded)
        for batch, some in warmers.items():
            if some.wait(max(1.0, until - time.monotonic() - 15.0)):
                for recorded in (True, False):
                    measure(batch, True, recorded)
