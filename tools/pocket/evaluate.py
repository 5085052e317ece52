"""Measures whether pictures show what their prompts say. Writes `evaluation.json` and the table `evaluation.md`.

Prompts name everything that can be seen of portraits drawn for this alone; black-and-white ones are left out, as they have no
colours to count. The classifier judges; it can only be as right as it says it is on held-out renders. What a negative prompt
removes is counted on vague prompts ("a portrait"), which leave everything open: of the pictures that show a thing, those that
no longer show it when the negative prompt names it, with the same seed.

Pictures come from the model in PyTorch (in a stage of `train.py`), or from the program itself:

    python evaluate.py --pictures DIR --softbox PATH/TO/softbox --prompts 200 --vague 60
    python evaluate.py --pictures DIR            judges what is in DIR already
    python evaluate.py --write-list FILE         prompts, seeds and file names, for any other program
"""

from __future__ import annotations

import argparse
import subprocess
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import attributes
import captions
import draw
from classifier import COLUMNS, Classifier, CornerColors, predict
from common import prepare_device, say, write_json
from data import stream_of
from settings import FULL, Settings, Size

CFG = 7.0
OTHER_CFGS = (1.0, 12.0)
# Attributes that a full caption always names.
NAMED = ["person", "age", "skin", "face", "hair_color", "eyes", "glasses", "hat", "beard", "expression", "turn", "clothing",
         "clothing_color", "background", "framing"]  # fmt: skip
THINGS = ["glasses", "hat", "beard"]


@dataclass(frozen=True)
class Case:
    """One picture to make. `expect` holds class indices of what the prompt names; `thing` what a negative prompt names."""

    id: str
    kind: str
    prompt: str
    seed: int
    cfg: float
    size: Size
    steps: int
    negative: str = ""
    expect: dict[str, int] = field(default_factory=dict)
    thing: str = ""
    of: str = ""


def expectation(portrait: attributes.Portrait, prompt: str) -> dict[str, int]:
    """What a picture of this full caption should show."""
    labels = attributes.labels(portrait)
    expect = {name: labels[name] for name in NAMED if labels[name] >= 0}
    if portrait.named("hair_length") == "bald":
        # A beard has the hair's colour, but the caption only says bald.
        expect.pop("hair_color", None)
    if any(words in prompt for words in captions.WORDS["light"][portrait.named("light")]):
        expect["light"] = labels["light"]
    return expect


def main_cases(settings: Settings, prompts: int, seeds: int) -> list[Case]:
    """The held-out prompts, each with some seeds, at the native size and CFG 7."""
    cases: list[Case] = []
    index = number = 0
    while number < prompts:
        portrait = draw.portrait(stream_of("evaluation"), index)
        if portrait.named("tone") == "color":
            prompt = captions.full_caption(portrait, draw.generator(stream_of("evaluation"), index, purpose=1))
            for k in range(seeds):
                cases.append(
                    Case(f"main-{number:03}-{k}", "main", prompt, 1000 + 10 * number + k, CFG, settings.sizes[0],
                         settings.eval_steps, expect=expectation(portrait, prompt))  # fmt: skip
                )
            number += 1
        index += 1
    return cases


def other_cases(settings: Settings, main: list[Case]) -> list[Case]:
    """The same prompts and seeds at other strengths of guidance, and half of the prompts at the other sizes."""
    cases = [replace(c, id=c.id.replace("main", f"cfg{cfg:g}"), kind=f"cfg{cfg:g}", cfg=cfg) for cfg in OTHER_CFGS for c in main]
    for size in settings.sizes[1:]:
        name = f"{size[0]}x{size[1]}"
        cases += [replace(c, id=c.id.replace("main", name), kind=name, size=size) for c in main[: len(main) // 2]]
    return cases


def vague_cases(settings: Settings, number: int) -> list[Case]:
    """Prompts that leave everything open, over and over with new seeds."""
    texts = captions.VAGUE
    return [
        Case(f"vague-{i:03}", "vague", texts[i % len(texts)], 50_000 + i, CFG, settings.sizes[0], settings.eval_steps)
        for i in range(number)
    ]


def negative_cases(vague: list[Case], found: torch.Tensor) -> list[Case]:
    """For each thing that a vague picture shows, the same picture with a negative prompt that names the thing."""
    cases = []
    for case, row in zip(vague, found.tolist()):
        shown = dict(zip(COLUMNS, row))
        names = {name: attributes.LABELS[name][shown[name]] for name in COLUMNS}
        words = {name: names[name] for name in THINGS if shown[name] > 0}
        if "hat" in words:
            words["hat"] = "hat"
        if names["tone"] == "color":
            words["background"] = f"{names['background']} background"
            if names["hair_length"] != "bald":
                words["hair_color"] = f"{names['hair_color']} hair"
        for thing, word in words.items():
            cases.append(
                replace(case, id=f"{case.id}-no-{thing.split('_')[0]}", kind="negative", negative=word, thing=thing,
                        expect={thing: shown[thing]}, of=case.id)  # fmt: skip
            )
    return cases


class ModelMaker:
    """Makes the pictures of cases with the model in PyTorch."""

    def __init__(self, model, vae, tokenizer):
        self.parts = model, vae, tokenizer

    def __call__(self, cases: list[Case]) -> dict[str, torch.Tensor]:
        """Pictures uint8 `[h, w, 3]` by the cases' ids."""
        from sampler import pictures

        made = {}
        for size, cfg, steps in dict.fromkeys((c.size, c.cfg, c.steps) for c in cases):
            some = [c for c in cases if (c.size, c.cfg, c.steps) == (size, cfg, steps)]
            columns = [c.prompt for c in some], [c.negative for c in some], [c.seed for c in some]
            made.update(zip((c.id for c in some), pictures(*self.parts, *columns, size, steps, cfg)))
        return made


class ProgramMaker:
    """Reads the pictures of cases from a folder, where each is `ID.png`; those absent are made by the program, if given."""

    def __init__(self, folder: Path, program: Path | None, model: Path | None, device: torch.device):
        self.folder, self.program, self.device = folder, program, device
        # Without a model the program takes the one built into it.
        self.model = ["--model", str(model)] if model else []

    def __call__(self, cases: list[Case]) -> dict[str, torch.Tensor]:
        """Pictures uint8 `[h, w, 3]` by the cases' ids; without those that are not there."""
        made = {}
        for case in cases:
            path = self.folder / f"{case.id}.png"
            if not path.exists() and self.program is not None:
                command = [self.program, *program_arguments(case, path), *self.model]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if path.exists():
                made[case.id] = torch.from_numpy(np.array(Image.open(path).convert("RGB"))).to(self.device)
        return made


def program_arguments(case: Case, path: Path) -> list[str]:
    """The program's command line for a case."""
    return ["generate", "--prompt", case.prompt, "--negative", case.negative, "--seed", str(case.seed), "--rng", "cpu",
            "--sampler", "euler", "--steps", str(case.steps), "--cfg", f"{case.cfg:g}",
            "--size", f"{case.size[0]}x{case.size[1]}", "--device", "cpu", "--out", str(path)]  # fmt: skip


class Judge:
    """Classes of pictures by case, gathered as pictures are made."""

    def __init__(self, classifier: Classifier, corners: CornerColors):
        self.classifier, self.corners = classifier, corners
        self.found: dict[str, dict[str, int]] = {}

    def look(self, cases: list[Case], made: dict[str, torch.Tensor]) -> torch.Tensor:
        """Judges the pictures of cases of one size; all must have been made. Returns classes `[n, attributes]`."""
        pictures = torch.stack([made[case.id] for case in cases])
        classes = predict(self.classifier, pictures)
        measured = self.corners(pictures)
        for case, row, corner in zip(cases, classes.tolist(), measured.tolist()):
            self.found[case.id] = {**dict(zip(COLUMNS, row)), "background_measured": corner}
        return classes


def evaluate(maker, judge: Judge, settings: Settings, prompts: int, seeds: int, vague: int, others: bool = True):
    """Makes and judges everything; without `others` only CFG 7 and the native size.

    Yields the cases whose pictures exist and the figures: first of the former part, then of all.
    """

    def made_of(cases: list[Case]) -> list[Case]:
        made = maker(cases)
        there = [case for case in cases if case.id in made]
        for size in dict.fromkeys(case.size for case in there):
            judge.look([case for case in there if case.size == size], made)
        say(f"evaluation: {len(there)} of {len(cases)} pictures: {', '.join(dict.fromkeys(c.kind for c in cases))}")
        return there

    main = main_cases(settings, prompts, seeds)
    done = made_of(main)
    open_ones = made_of(vague_cases(settings, vague))
    done += open_ones
    classes = torch.tensor([[judge.found[c.id][name] for name in COLUMNS] for c in open_ones]).reshape(-1, len(COLUMNS))
    done += made_of(negative_cases(open_ones, classes))
    yield done, figures(done, judge.found)
    if others:
        done += made_of(other_cases(settings, main))
        yield done, figures(done, judge.found)


def _share(pairs: list[bool]) -> list[int]:
    return [sum(pairs), len(pairs)]


def figures(cases: list[Case], found: dict[str, dict[str, int]]) -> dict:
    """All figures as [right, of]."""
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)

    def right(kind: str, name: str, where=lambda expected: True) -> list[int]:
        some = [c for c in kinds.get(kind, []) if name in c.expect and where(c.expect[name])]
        return _share([found[c.id][name] == c.expect[name] for c in some])

    def present(name: str, asked: bool) -> list[int]:
        some = [c for c in kinds.get("main", []) if name in c.expect and (c.expect[name] > 0) == asked]
        return _share([(found[c.id][name] > 0) == asked for c in some])

    def measured(kind: str) -> list[int]:
        some = [c for c in kinds.get(kind, []) if "background" in c.expect]
        return _share([found[c.id]["background_measured"] == c.expect["background"] for c in some])

    def removed(thing: str | None) -> list[int]:
        some = [c for c in kinds.get("negative", []) if thing in (None, c.thing)]
        gone = [found[c.id][c.thing] == 0 if c.thing in THINGS else found[c.id][c.thing] != c.expect[c.thing] for c in some]
        return _share(gone)

    def both(kind: str) -> list[int]:
        some = [c for c in kinds.get(kind, []) if {"hair_color", "background"} <= c.expect.keys()]
        return _share([all(found[c.id][n] == c.expect[n] for n in ("hair_color", "background")) for c in some])

    side = [attributes.LABELS["light"].index(name) for name in ("left", "right")]
    result = {
        "background colour": right("main", "background"),
        "background colour, measured at the corners": measured("main"),
        "hair colour": right("main", "hair_color"),
        "clothing colour": right("main", "clothing_color"),
        **{f"{name} present when asked": present(name, True) for name in THINGS},
        **{f"{name} absent when not asked": present(name, False) for name in THINGS},
        "light side": right("main", "light"),
        "light side, left and right only": right("main", "light", lambda c: c in side),
        "negative prompt removes": removed(None),
        **{f"negative prompt removes: {name}": removed(name) for name in (*THINGS, "background", "hair_color")},
    }
    strengths = {f"CFG {c:g}": "main" if c == CFG else f"cfg{c:g}" for c in sorted((CFG, *OTHER_CFGS))}
    for label, kind in strengths.items():
        result[f"{label}: hair colour"] = right(kind, "hair_color")
        result[f"{label}: background colour"] = right(kind, "background")
        result[f"{label}: both"] = both(kind)
    for kind in kinds:
        if "x" in kind:
            for name, label in (("background", "background colour"), ("hair_color", "hair colour"), ("clothing_color", "clothing colour")):
                result[f"{kind}: {label}"] = right(kind, name)
    for name in NAMED + ["light"]:
        result[f"named: {name}"] = right("main", name)
    return result


TARGETS = {
    "background colour": 95, "hair colour": 90, "clothing colour": 90, "light side": 85, "negative prompt removes": 85,
    **{f"{name} present when asked": 90 for name in THINGS}, **{f"{name} absent when not asked": 90 for name in THINGS},
}  # fmt: skip


def table(result: dict) -> str:
    """The figures as a Markdown table."""
    lines = ["| what | right | of | % | wanted |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, (right, of) in result.items():
        percent = f"{100 * right / of:.1f}" if of else "–"
        wanted = f"≥ {TARGETS[name]}" if name in TARGETS else ""
        lines.append(f"| {name} | {right} | {of} | {percent} | {wanted} |")
    return "\n".join(lines) + "\n"


def write(out: Path, cases: list[Case], judge: Judge, result: dict, name: str = "evaluation") -> None:
    """Writes NAME.json (each case with what was found) and NAME.md."""
    rows = [{**asdict(case), "found": judge.found[case.id]} for case in cases]
    write_json(out / f"{name}.json", {"figures": result, "cases": rows}, indent=None)
    (out / f"{name}.md").write_text(table(result), encoding="utf-8")


def run(model, vae, tokenizer, state: Path, out: Path, settings: Settings, device, others: bool = True) -> dict:
    """Evaluates the model in PyTorch, as a part of a stage."""
    import classifier

    judge = Judge(*classifier.load(state, device))
    maker = ModelMaker(model, vae, tokenizer)
    sizes = settings.eval_prompts, settings.eval_seeds, settings.eval_vague
    result: dict = {}
    for cases, result in evaluate(maker, judge, settings, *sizes, others):
        write(out, cases, judge, result)
    print(table(result), flush=True)
    return result


def main() -> None:
    import classifier

    parser = argparse.ArgumentParser(description="Judges pictures that the program made.")
    parser.add_argument("--pictures", type=Path, help="folder with ID.png of each case")
    parser.add_argument("--softbox", type=Path, help="the program, to make the pictures that are absent")
    parser.add_argument("--model", type=Path, help="the program's model, if not the one built into it")
    parser.add_argument("--state", type=Path, default=Path("target/pocket"), help="folder with the trained classifier")
    parser.add_argument("--write-list", type=Path, help="only write prompts, seeds and file names")
    parser.add_argument("--prompts", type=int, default=FULL.eval_prompts)
    parser.add_argument("--seeds", type=int, default=1, help="pictures for each prompt")
    parser.add_argument("--vague", type=int, default=60, help="pictures of prompts that leave everything open")
    parser.add_argument("--native-only", action="store_true", help="only CFG 7 and the native size")
    arguments = parser.parse_args()
    if arguments.write_list:
        main_ones = main_cases(FULL, arguments.prompts, arguments.seeds)
        listed = main_ones + other_cases(FULL, main_ones) + vague_cases(FULL, arguments.vague)
        write_json(arguments.write_list, [{**asdict(case), "file": f"{case.id}.png"} for case in listed])
        return
    if not arguments.pictures:
        parser.error("--pictures or --write-list is needed")
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    device = prepare_device(0)
    judge = Judge(*classifier.load(arguments.state, device))
    maker = ProgramMaker(arguments.pictures, arguments.softbox, arguments.model, device)
    sizes = arguments.prompts, arguments.seeds, arguments.vague
    for cases, result in evaluate(maker, judge, FULL, *sizes, others=not arguments.native_only):
        write(arguments.pictures, cases, judge, result)
        print(table(result), flush=True)


if __name__ == "__main__":
    main()
