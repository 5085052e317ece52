"""Trains Pocket: one command for everything, or stage by stage on a machine that is lent for minutes.

    python tools/pocket/train.py --all                                     everything, into target/pocket and assets/pocket
    python tools/pocket/train.py --stage vae --deadline 560                vocabulary, VAE, classifier
    python tools/pocket/train.py --stage unet --number 1 --schedule 0 0.55 text encoder and UNet
    python tools/pocket/train.py --stage unet --number 2 --schedule 0.55 1 goes on from stage 1
    python tools/pocket/train.py --stage rest --vae-seconds 0              everything after the VAE, with the VAE that is there
    python tools/pocket/train.py --stage profile --seconds 100             how fast steps of the UNet are, and why
    python tools/pocket/train.py --stage evaluate                          pictures and figures of what is there
    python tools/pocket/train.py --stage export                            writes assets/pocket

State is read from `--state` and written to `--out`. Nothing heavy is imported before it is needed: worker processes that only
draw portraits import this file too.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path

from common import Clock, prepare_device, say, write_json
from settings import FULL, SEED, TINY, Settings

# Seconds that measuring takes, kept free before the deadline.
CLASSIFIER_RESERVE = 35.0
EVALUATION_RESERVE = 60.0
# Seconds that rendering for the classifier takes.
CLASSIFIER_RENDERING = 45.0


def tokenizer_stage(settings: Settings, out: Path) -> Path:
    """Learns the vocabulary; returns its file."""
    import draw
    from data import stream_of
    from tokenizer import Tokenizer, learn, words

    texts = list(draw.corpus(stream_of("tokenizer"), settings.tokenizer_captions))
    tokenizer = Tokenizer(learn(texts))
    known = {word for text in texts for word in words(text)}
    split = sorted(word for word in known if len(tokenizer.ids(word)) != 1)
    longest = max(len(tokenizer.ids(text)) for text in texts)
    say(f"vocabulary: {len(tokenizer)} tokens, {len(known)} words, {len(split)} of them in pieces, at most {longest} tokens a caption")
    path = out / "tokenizer.json"
    tokenizer.save(path)
    return path


def vae_stage(settings: Settings, arguments, clock: Clock, device) -> None:
    """Vocabulary, VAE and classifier."""
    import classifier
    import train_vae
    from data import Source, stream_of
    from sampler import save_sheet

    out = arguments.out
    tokenizer_file = tokenizer_stage(settings, out)
    with Source(settings, device, tokenizer_file, arguments.workers) as source:
        # The classifier renders, trains and is measured after the VAE.
        after = settings.classifier_seconds + CLASSIFIER_RESERVE + 25.0
        warmers = train_vae.warmers_of(settings) if arguments.compile else None
        data = {size: some for size, (_, some) in source.by_size(stream_of("vae"), settings.vae_pictures).items()}
        vae, report = train_vae.train(settings, device, clock, source, data, warmers, out, after)
        write_json(out / "vae-report.json", {"vae": report})
        blocks = []
        for size, columns in zip(settings.sizes, (6, 6, 4)):
            _, plain = source.held_out(stream_of("sheet"), size, columns)
            blocks += [(plain, columns), (train_vae.decode(vae, train_vae.encode(vae, plain)), columns)]
        save_sheet(blocks, out / "vae-sheet.jpg")
        judged = classifier.train(settings, device, clock, source, vae, out, CLASSIFIER_RESERVE)
        write_json(out / "vae-report.json", {"vae": report, "classifier": judged})


def unet_stage(settings: Settings, arguments, clock: Clock, device, number: int, schedule: tuple[float, float]) -> None:
    """One stage of text encoder and UNet, with pictures and figures after its state is saved."""
    import export
    import train_unet
    from data import Source, stream_of
    from tokenizer import Tokenizer

    state, out = arguments.state, arguments.out
    tokenizer_file = state / "tokenizer.json"
    entries = len(Tokenizer.load(tokenizer_file))
    vae = export.load_vae(state).to(device)
    with Source(settings, device, tokenizer_file, arguments.workers) as source:
        warmers = train_unet.warmers_of(settings.sizes, entries, settings.unet_batch) if arguments.compile else None
        chunks = source.chunks(stream_of("unet", number), settings.unet_pictures, settings.captions)
        buckets = train_unet.latents_of(chunks, vae, device)
        model, report = train_unet.train(
            settings, device, clock, buckets, warmers, tokenizer_file, state, out, number, schedule, EVALUATION_RESERVE,
            arguments.graphs,
        )
    write_json(out / f"unet-{number}-report.json", report)
    measure(settings, arguments, clock, device, model, vae)


def rest_stage(settings: Settings, arguments, clock: Clock, device) -> None:
    """Everything after a first VAE stage in one go, on one set of portraits: the VAE further (or kept), then text encoder and UNet, then
    the classifier, pictures and figures. Compiles and renders once where separate stages would do so each time."""
    from dataclasses import replace

    import torch

    import classifier
    import train_unet
    import train_vae
    from data import Source, stream_of
    from sampler import save_sheet
    from tokenizer import Tokenizer

    state, out = arguments.state, arguments.out
    out.mkdir(parents=True, exist_ok=True)
    tokenizer_file = state / "tokenizer.json"
    entries = len(Tokenizer.load(tokenizer_file))
    if out != state:
        # With it, a checkpoint from the middle is all that pictures need.
        (out / "tokenizer.json").write_bytes(tokenizer_file.read_bytes())
    with Source(settings, device, tokenizer_file, arguments.workers) as source:
        # The helpers compile while the portraits are rendered; a VAE that is kept needs none.
        warm_unet = train_unet.warmers_of(settings.sizes, entries, settings.unet_batch) if arguments.compile else None
        warm_vae = train_vae.warmers_of(settings) if arguments.compile and settings.vae_more_seconds else None
        chunks = list(source.chunks(stream_of("unet", 1), settings.unet_pictures, settings.captions))
        after = settings.classifier_seconds + CLASSIFIER_RESERVE + CLASSIFIER_RENDERING + EVALUATION_RESERVE
        if settings.vae_more_seconds:
            pictures: dict = {}
            for chunk in chunks:
                pictures.setdefault(chunk.size, []).append(chunk.pictures)
            data = {size: torch.cat(some) for size, some in pictures.items()}
            more = replace(settings, vae_seconds=settings.vae_more_seconds)
            later = after + 0.75 * min(settings.unet_seconds, max(0.0, clock.left() - after))
            vae, report = train_vae.train(more, device, clock, source, data, warm_vae, out, later, state)
            del data, pictures
        else:
            vae, report = train_vae.keep(settings, device, source, state, out)
        write_json(out / "vae-report.json", {"vae": report})
        buckets = train_unet.latents_of(chunks, vae, device)
        chunks.clear()
        model, report_unet = train_unet.train(
            settings, device, clock, buckets, warm_unet, tokenizer_file, state, out, 1, (0.0, 1.0), after, arguments.graphs
        )
        write_json(out / "unet-1-report.json", report_unet)
        blocks = []
        for size, columns in zip(settings.sizes, (6, 6, 4)):
            _, plain = source.held_out(stream_of("sheet"), size, columns)
            blocks += [(plain, columns), (train_vae.decode(vae, train_vae.encode(vae, plain)), columns)]
        save_sheet(blocks, out / "vae-sheet.jpg")
        judged = classifier.train(settings, device, clock, source, vae, out, CLASSIFIER_RESERVE + EVALUATION_RESERVE)
        write_json(out / "vae-report.json", {"vae": report, "classifier": judged})
    arguments.state = out
    measure(settings, arguments, clock, device, model, vae)


def measure(settings: Settings, arguments, clock: Clock, device, model, vae) -> None:
    """A sheet of pictures and the figures of the model. Without its clock's time, fewer of them."""
    import torch

    import captions
    import draw
    import evaluate
    import sampler
    from data import stream_of
    from tokenizer import Tokenizer

    # Many shapes, each a few times: trying out kernels would take longer than it saves.
    torch.backends.cudnn.benchmark = False
    tokenizer = Tokenizer.load(arguments.state / "tokenizer.json")
    blocks, prompts = [], []
    for size, n, columns in zip(settings.sizes, (36, 6, 4), (6, 6, 4)):
        stream = stream_of("sheet")
        portraits = [draw.portrait(stream, len(prompts) + i) for i in range(n)]
        texts = [captions.caption(p, draw.generator(stream, len(prompts) + i, purpose=1)) for i, p in enumerate(portraits)]
        seeds = list(range(len(prompts), len(prompts) + n))
        made = sampler.pictures(model, vae, tokenizer, texts, [""] * n, seeds, size, settings.eval_steps, evaluate.CFG)
        blocks.append((made, columns))
        prompts += texts
    sampler.save_sheet(blocks, arguments.out / "sheet.jpg")
    write_json(arguments.out / "sheet.json", prompts)
    say("wrote sheet.jpg")
    evaluate.run(model, vae, tokenizer, arguments.state, arguments.out, settings, device, others=clock.left() > 30.0)
    torch.backends.cudnn.benchmark = device.type == "cuda"


def evaluate_stage(settings: Settings, arguments, clock: Clock, device) -> None:
    """Pictures and figures of the saved model."""
    import export
    import train_unet
    from tokenizer import Tokenizer

    tokenizer = Tokenizer.load(arguments.state / "tokenizer.json")
    model = train_unet.load_generator(arguments.state, tokenizer, device)
    measure(settings, arguments, clock, device, model, export.load_vae(arguments.state).to(device))


def export_stage(arguments) -> None:
    """Writes the diffusers folder."""
    import export

    export.export(arguments.state, arguments.export)
    export.compare(arguments.state, arguments.export)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains Pocket.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="all stages in order")
    what.add_argument("--stage", choices=["vae", "unet", "rest", "profile", "evaluate", "export"])
    parser.add_argument("--number", type=int, default=1, help="which stage of the UNet; above 1 goes on from saved state")
    parser.add_argument("--schedule", type=float, nargs=2, default=(0.0, 1.0), metavar=("START", "END"),
                        help="the part of the whole training, 0 to 1, that this UNet stage covers")  # fmt: skip
    parser.add_argument("--state", type=Path, default=Path("target/pocket"), help="folder to read state from")
    parser.add_argument("--out", type=Path, help="folder to write to; the state's unless given")
    parser.add_argument("--export", type=Path, default=Path("assets/pocket"), help="folder for the finished model")
    parser.add_argument("--deadline", type=float, help="seconds from the start by which everything has to be over")
    parser.add_argument("--seconds", type=float, help="most seconds of training in this stage (VAE or UNet)")
    parser.add_argument("--vae-seconds", type=float, help="training of the VAE in the stage `rest`; 0 keeps the one in --state as it is")
    parser.add_argument("--batch", type=int, help="samples in a step of the UNet")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="without recording whole steps as CUDA graphs")
    parser.add_argument("--tiny", action="store_true", help="small and short, only to see that everything runs")
    parser.add_argument("--workers", type=int, help="processes that draw portraits; 0 for none")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="without torch.compile")
    arguments = parser.parse_args()
    arguments.out = arguments.out or arguments.state
    return arguments


def main() -> int:
    from dataclasses import replace

    arguments = parsed()
    clock = Clock(arguments.deadline)
    settings = TINY if arguments.tiny else FULL
    if arguments.seconds:
        settings = replace(settings, vae_seconds=arguments.seconds, unet_seconds=arguments.seconds)
    if arguments.vae_seconds is not None:
        settings = replace(settings, vae_more_seconds=arguments.vae_seconds)
    if arguments.batch:
        settings = replace(settings, unet_batch=arguments.batch)
    device = prepare_device(SEED)
    arguments.compile = arguments.compile and device.type == "cuda" and not arguments.tiny
    if arguments.all:
        arguments.state = arguments.out
        vae_stage(settings, arguments, clock, device)
        rest_stage(settings, arguments, clock, device)
        export_stage(arguments)
    elif arguments.stage == "vae":
        vae_stage(settings, arguments, clock, device)
    elif arguments.stage == "unet":
        unet_stage(settings, arguments, clock, device, arguments.number, tuple(arguments.schedule))
    elif arguments.stage == "rest":
        rest_stage(settings, arguments, clock, device)
    elif arguments.stage == "profile":
        import profiling

        profiling.run(settings, device, arguments.seconds or 100.0, arguments.compile, arguments.state)
    elif arguments.stage == "evaluate":
        evaluate_stage(settings, arguments, clock, device)
    else:
        export_stage(arguments)
    say("done")
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        traceback.print_exc()
        say("failed; what was saved before is in the output folder")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Worker processes and compile threads must not hold up the end of a stage.
    os._exit(code)
