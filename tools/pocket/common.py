"""What all stages share: the clock that ends a stage in time, progress on the terminal, the device, and saved state.

A stage may run on a machine that is lent for minutes and gives back a few files of limited size. So state is written in
parts under `PART_BYTES`, flat in one folder, and before anything that is only measured.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

# Largest file that state is written in.
PART_BYTES = 15 * 1024 * 1024 + 900 * 1024

_STARTED = time.monotonic()


def say(text: str) -> None:
    """Prints a line of progress with the seconds since the process started, at once."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


class Clock:
    """Time left until a stage has to be over.

    `deadline` is in seconds from the start of the process; without one there is always enough time.
    """

    def __init__(self, deadline: float | None):
        self.deadline = deadline
        if deadline is not None:
            # What is saved is saved: a measurement that runs late must not take the machine's last seconds.
            watch = threading.Timer(self.left(), self._over)
            watch.daemon = True
            watch.start()

    def _over(self) -> None:
        say("the deadline; ending with what is saved")
        os._exit(124)

    def left(self) -> float:
        """Seconds until the deadline, at least 0; infinite without one."""
        if self.deadline is None:
            return float("inf")
        return max(0.0, self.deadline - (time.monotonic() - _STARTED))

    def budget(self, wished: float, reserve: float) -> float:
        """The seconds that a step may take: as many as wished, if `reserve` seconds then remain for what follows."""
        return max(1.0, min(wished, self.left() - reserve))


def prepare_device(seed: int):
    """Picks the GPU if there is one, seeds torch, and allows TF32 and cuDNN's trials. Returns the device."""
    import torch

    torch.manual_seed(seed)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.set_float32_matmul_precision("high")
    # Flash attention takes every shape here without building plans at run time.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 4
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    return torch.device("cuda")


def write_json(path: Path, value, indent: int | None = 1) -> None:
    """Writes JSON with a newline at its end; long lists are better without `indent`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def save_parts(tensors: dict, folder: Path, stem: str, note: dict[str, str] | None = None) -> list[Path]:
    """Writes tensors as `stem-1.safetensors`, `stem-2.safetensors`, … with each file under `PART_BYTES`.

    `note` goes into each file's metadata. Older parts of the same stem are removed. Returns the files.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{stem}-*.safetensors"):
        old.unlink()
    parts: list[dict] = [{}]
    filled = 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        size = tensor.numel() * tensor.element_size() + 200  # 200: its entry in the header
        if parts[-1] and filled + size > PART_BYTES:
            parts.append({})
            filled = 0
        parts[-1][name] = tensor
        filled += size
    files = []
    for number, part in enumerate(parts, 1):
        path = folder / f"{stem}-{number}.safetensors"
        save_file(part, path, metadata={"format": "pt", **(note or {})})
        files.append(path)
        say(f"wrote {path.name}, {path.stat().st_size / 2**20:.2f} MiB")
    return files


def load_parts(folder: Path, stem: str) -> tuple[dict, dict[str, str]]:
    """Reads what `save_parts` wrote: the tensors on the CPU, and the note."""
    from safetensors import safe_open

    files = sorted(folder.glob(f"{stem}-*.safetensors"))
    if not files:
        raise FileNotFoundError(f"no {stem}-*.safetensors in {folder}")
    tensors, note = {}, {}
    for path in files:
        with safe_open(path, "pt") as file:
            note.update(file.metadata() or {})
            for name in file.keys():
                tensors[name] = file.get_tensor(name)
    return tensors, note


def has_parts(folder: Path, stem: str) -> bool:
    """Whether `load_parts` would find something."""
    return any(folder.glob(f"{stem}-*.safetensors"))
