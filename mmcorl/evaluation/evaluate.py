"""One evaluation from its settings to its scores."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent
from mmcorl.evaluation.declaration import Declaration
from mmcorl.evaluation.loading import load_benchmark
from mmcorl.evaluation.progress import Progress
from mmcorl.evaluation.runner import Judges, Part, begin_benchmark, begin_run, run_part
from mmcorl.evaluation.settings import Asked
from mmcorl.evaluation.tables import Summary, summarize, write_summary
from mmcorl.graders import Grader


def evaluate(
    models: Mapping[str, str],
    declarations: Sequence[Declaration],
    asked: Asked,
    out: Path,
    data: Mapping[str, Path],
) -> Summary:
    """Run models (name -> folder or hub id) on benchmarks, go on with what is in `out`, and write the scores.

    `data` holds local copies by benchmark. One model is in memory at a time, and none is loaded that has nothing left
    to do. Raises MmcorlError for data that cannot be read, before any model is loaded.
    """
    disable_progress_bar()  # of weights; problems have their own
    samplings = [asked.sampling(declaration) for declaration in declarations]
    with Grader() as grader, Judges(grader, asked.settings.code) as judges:
        loaded = [load_benchmark(d, grader, data.get(d.name), asked.limit) for d in declarations]
        begin_run(out, models, asked)
        parts = [
            Part(benchmark, begin_benchmark(out, benchmark, sampling), sampling)
            for benchmark, sampling in zip(loaded, samplings, strict=True)
        ]
        for place, (name, model) in enumerate(models.items()):
            left = [part for part in parts if not part.finished(name)]
            if not left:
                continue
            settings = asked.settings
            agent = Agent.load(
                name,
                settings.agent(model),
                settings.prompt,
                settings.images,
                settings.rollouts(),
                "cuda" if torch.cuda.is_available() else "cpu",
            )
            with Progress() as progress:
                for part in left:
                    run_part(agent, place, part, asked, judges, progress)
            del agent
            gc.collect()  # its weights, before those of the next
        summary = summarize(out, grader.classes)
        write_summary(out, summary)
    return summary
