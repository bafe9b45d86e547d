"""A model that is trained from a Lance table, killed, and resumed with other ranks: its losses are those without the kill.

Run by ``make demo-train`` in ``.venv-train``.  One run trains without a break on one rank.  Another begins on two ranks,
is ended by ``kill -9``, and goes on with three from its last checkpoint.  Each rank reads with two workers.  The program
ends with status 1 if a step saw other rows, or had another loss, than the same step of the run without a break.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

import pennon
import pennon.torch

ROWS, FEATURES, CLASSES = 24_000, 64, 10
BATCH_SIZE, EPOCHS, WORKERS = 240, 2, 2
STEPS = EPOCHS * (ROWS // BATCH_SIZE)
CHECKPOINT_STEPS = 15
KILL_AFTER_STEP = 80
WORLDS = {"without a break": 1, "before the kill": 2, "after the kill": 3}
TOLERANCE = 1e-9
"""Ranks add their gradients in another order; with doubles the losses differ by no more, relatively."""
PATIENCE_SECONDS = 170


@dataclass(frozen=True, slots=True)
class Places:
    """The folder of a run: its losses and its checkpoint."""

    folder: Path

    @property
    def table(self) -> str:
        """Return the table, which all runs share."""
        return str(self.folder.parent / "rows.lance")

    @property
    def losses(self) -> Path:
        """Return the file with a line for each step."""
        return self.folder / "losses.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Return the file with the model, the optimizer and the loader's state."""
        return self.folder / "checkpoint.pt"


# --- one rank -----------------------------------------------------------------------------------------


def train(places: Places, rank: int, world_size: int, meeting: Path) -> None:
    """Train one rank's share of each batch, from the last checkpoint on if there is one."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=world_size)
    data = pennon.torch.LanceBatches(
        places.table, batch_size=BATCH_SIZE, seed=43, rank=rank, world_size=world_size
    )
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    options: dict[str, Any] = {
        "batch_size": None,
        "collate_fn": pennon.torch.collate,
        "num_workers": WORKERS,
    }
    step = 0
    if places.checkpoint.exists():
        saved = torch.load(places.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        data.load_state_dict(json.loads(saved["data"]))
        step = saved["step"]
    for epoch in range(step // (STEPS // EPOCHS), EPOCHS):
        data.set_epoch(epoch)
        for done, batch in enumerate(DataLoader(data, **options), 1):
            loss, rows = train_step(model, optimizer, batch)
            step += 1
            if rank == 0:
                note = {"step": step, "loss": loss, "rows": rows, "ranks": world_size}
                with places.losses.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(note) + "\n")
                if step % CHECKPOINT_STEPS == 0:
                    state = json.dumps(data.state_dict(batches=done))
                    save(places.checkpoint, model, optimizer, state, step)
    dist.barrier()
    dist.destroy_process_group()


def new_model() -> nn.Module:
    """Return the model with the same first weights in each rank."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES)).double()


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: dict[str, torch.Tensor]
) -> tuple[float, int]:
    """Train on this rank's rows; return the loss of all ranks' rows, and a number that all row ids make."""
    optimizer.zero_grad()
    scores = model(batch["features"].double())
    loss = nn.functional.cross_entropy(scores, batch["label"], reduction="sum") / BATCH_SIZE
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    total = loss.detach().clone()
    ids = batch["id"]
    fingerprint = torch.sum(ids * (ids + 17) % 1_000_003)
    dist.all_reduce(total)
    dist.all_reduce(fingerprint)
    return float(total), int(fingerprint)


def save(
    target: Path, model: nn.Module, optimizer: torch.optim.Optimizer, data: str, step: int
) -> None:
    """Write a checkpoint that is there as a whole or not at all."""
    written = target.with_suffix(".new")
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**states, "data": data, "step": step}, written)
    written.rename(target)


# --- the story ----------------------------------------------------------------------------------------


def write_table(uri: str) -> None:
    """Write rows whose label a hidden linear map of their features decides."""
    random = np.random.default_rng(5)
    features = random.standard_normal((ROWS, FEATURES)).astype(np.float32)
    labels = (features @ random.standard_normal((FEATURES, CLASSES))).argmax(axis=1)
    vectors = pa.FixedSizeListArray.from_arrays(features.ravel(), FEATURES)
    rows = pa.table({"id": np.arange(ROWS), "features": vectors, "label": labels})
    pennon.write_dataset(rows, uri, max_rows_per_file=ROWS // 4)


@contextlib.contextmanager
def ranks(places: Places, world_size: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start the processes of a run, each in a group of its own with its workers; end all at last."""
    meeting = Path(tempfile.mkstemp(dir=places.folder)[1])
    meeting.unlink()
    words = [sys.executable, __file__, "--folder", str(places.folder), "--meeting", str(meeting)]
    running = [
        subprocess.Popen(
            [*words, "--rank", str(rank), "--world-size", str(world_size)], start_new_session=True
        )
        for rank in range(world_size)
    ]
    try:
        yield running
    finally:
        for each in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def run_to_end(places: Places, world_size: int) -> bool:
    """Train until the last step; return whether each rank ended well."""
    with ranks(places, world_size) as running:
        until = time.monotonic() + PATIENCE_SECONDS
        return all(each.wait(max(until - time.monotonic(), 1)) == 0 for each in running)


def run_and_kill(places: Places, world_size: int) -> int:
    """Train until a step is noted, and end all processes at once; return the last step that was noted."""
    with ranks(places, world_size) as running:
        until = time.monotonic() + PATIENCE_SECONDS
        while last_step(places) < KILL_AFTER_STEP and time.monotonic() < until:
            if any(each.poll() for each in running):
                return 0
            time.sleep(0.01)
    return last_step(places)


def notes(places: Places) -> list[dict[str, Any]]:
    """Return the notes of all steps; a line that the kill cut is none."""
    if not places.losses.exists():
        return []
    text = places.losses.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def last_step(places: Places) -> int:
    """Return the last step that was noted, 0 if none was."""
    found = notes(places)
    return found[-1]["step"] if found else 0


def difference(whole: list[dict[str, Any]], broken: list[dict[str, Any]]) -> str:
    """Say how the steps of two runs differ, "" if they do not; steps that were trained twice count twice."""
    expected = {note["step"]: note for note in whole}
    missing = set(range(1, STEPS + 1)) - {note["step"] for note in broken}
    if missing or len(expected) != STEPS:
        return f"steps are missing: {sorted(missing)[:5]} of the one, {len(expected)} in the other"
    for note in broken:
        step = note["step"]
        if note["rows"] != expected[step]["rows"]:
            return f"step {step} saw other rows"
        if abs(note["loss"] / expected[step]["loss"] - 1) > TOLERANCE:
            return f"step {step} has the loss {note['loss']}, not {expected[step]['loss']}"
    return ""


def tell(folder: Path) -> int:
    """Run the demo; return the status of the program."""
    begun = time.monotonic()
    whole, broken = Places(folder / "whole"), Places(folder / "broken")
    whole.folder.mkdir()
    broken.folder.mkdir()
    write_table(whole.table)
    print(f"A table of {ROWS:,} rows; {STEPS} steps of {BATCH_SIZE} rows, {WORKERS} workers a rank")
    alone, before, after = WORLDS.values()
    if not run_to_end(whole, alone):
        print("the run without a break failed")
        return 1
    losses = [note["loss"] for note in notes(whole)]
    print(f"{alone} rank, without a break: loss {losses[0]:.4f} at first, {losses[-1]:.4f} at last")
    killed = run_and_kill(broken, before)
    print(f"{before} ranks: killed (kill -9) after step {killed} of {STEPS}")
    if not killed or killed >= STEPS or not broken.checkpoint.exists():
        print("the run was not killed between a checkpoint and its end")
        return 1
    if not run_to_end(broken, after):
        print("the resumed run failed")
        return 1
    found = notes(broken)
    resumed = next(note["step"] for note in found if note["ranks"] == after)
    print(f"{after} ranks: resumed at step {resumed}, {killed - resumed + 1} steps trained again")
    for step in (1, resumed - 1, resumed, killed + 1, STEPS):
        mine = next(note for note in reversed(found) if note["step"] == step)
        print(
            f"  step {step:>4}: loss {losses[step - 1]:.12f} and {mine['loss']:.12f}, {mine['ranks']} ranks"
        )
    wrong = difference(notes(whole), found)
    learnt = losses[-1] < losses[0] / 2
    print(wrong or f"all {STEPS} steps saw the same rows and had the same loss")
    print("" if learnt else "the model learnt nothing; ", end="")
    print(f"{time.monotonic() - begun:.0f} s")
    return int(bool(wrong) or not learnt)


def main() -> int:
    """Run one rank if the command line says which, and the demo otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--meeting", type=Path)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--world-size", type=int)
    options = parser.parse_args()
    if options.rank is not None:
        train(Places(options.folder), options.rank, options.world_size, options.meeting)
        return 0
    with tempfile.TemporaryDirectory(prefix="pennon-demo-") as folder:
        return tell(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
