"""Points about what reaches the model: its parts, its prompts and their images."""

from __future__ import annotations

from dataclasses import replace

import torch
from PIL import Image, ImageOps

from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.contract.trial import BrokenContract, Skipped, Trial
from mmcorl.agents.lengths import PromptLengths
from mmcorl.agents.processors import PromptBuilder
from mmcorl.errors import PromptTooLong


def every_part_has_parameters(trial: Trial) -> str:
    """Every part of the model has parameters of its own, so that it can be frozen."""
    backbone = trial.agent.backbone
    counts = dict.fromkeys(("vision", "projector", "text") if backbone.sees_images else ("text",), 0)
    for name, parameter in trial.agent.model.named_parameters():
        part = backbone.part_of(name)
        counts[part] = counts.get(part, 0) + parameter.numel()
    said = ", ".join(f"{part} {count / 1e6:.2f} M" for part, count in counts.items())
    if not all(counts.values()):
        raise BrokenContract(f"parameters by vision_names and projector_names: {said}")
    return said


def placeholders_equal_features(trial: Trial) -> str:
    """Image placeholder tokens equal the feature rows of the vision part."""
    backbone = trial.agent.backbone
    if not backbone.sees_images:
        return Skipped("text only")
    counts = []
    for prompt in trial.prompts:
        rows = backbone.feature_rows(prompt.vision) if prompt.vision else 0
        tokens = int(torch.isin(prompt.ids, torch.tensor(sorted(backbone.placeholder_ids()))).sum())
        if rows != tokens:
            raise BrokenContract(f"{prompt.problem_id}: {tokens} tokens, {rows} rows")
        counts.append(tokens)
    if not any(counts):
        raise BrokenContract("no prompt has an image token")
    return f"{counts} tokens"


def lengths_are_known_without_pixels(trial: Trial) -> str:
    """The length of a prompt is known from the sizes of its images alone."""
    agent = trial.agent
    if not agent.backbone.sees_images:
        return Skipped("text only")
    assert agent.model.name_or_path is not None
    lengths = PromptLengths(agent.model.name_or_path, agent.prompts.prompt, agent.prompts.images)
    counted = [lengths(problem) for problem in trial.problems]
    built = [len(prompt.ids) for prompt in trial.prompts]
    if counted != built:
        raise BrokenContract(f"{counted} tokens counted, {built} built")
    return f"{counted} tokens"


def long_prompt_is_refused(trial: Trial) -> str:
    """A prompt that does not fit is refused with its id, never cut."""
    prompt, problem, built = trial.prompts[-1], trial.problems[-1], trial.agent.prompts
    builder = PromptBuilder(
        built.model, built.processor, built.backbone, built.prompt, built.images, len(prompt.ids) - 1
    )
    try:
        builder.build(problem)
    except PromptTooLong as error:
        if problem.id in str(error):
            return f"{len(prompt.ids)} tokens refused at a limit of {len(prompt.ids) - 1}"
        raise BrokenContract(f"the refusal does not name problem {problem.id!r}: {error}") from error
    raise BrokenContract("a prompt one token too long was taken")


def every_image_reaches_its_own_prompt(trial: Trial) -> str:
    """Every image changes the log-probabilities of its own prompt, and of no other in the batch."""
    agent = trial.agent
    if not agent.backbone.sees_images:
        return Skipped("text only")
    limit, last, problem = 1e-4, trial.groups[-1], trial.problems[-1]
    own = sum(len(completion) for completion in last.completions)
    seen = []
    with torch.no_grad():
        before = agent.policy.logprobs(trial.groups)
        for place in range(len(problem.images)):
            images, drawn = list(problem.images), problem.images[place]
            assert isinstance(drawn, Image.Image)
            images[place] = ImageOps.invert(drawn)
            changed = TokenGroup(agent.encode(replace(problem, images=tuple(images))), last.completions)
            difference = (agent.policy.logprobs([*trial.groups[:-1], changed]) - before).abs()
            if not (elsewhere := float(difference[:-own].max())) <= limit:
                raise BrokenContract(
                    f"image {place + 1} of {problem.id!r} changes other prompts by {elsewhere:.2g} nats"
                )
            seen.append(float(difference[-own:].max()))
            if not seen[-1] > 0:
                raise BrokenContract(f"image {place + 1} of {problem.id!r} changes nothing")
    return f"inverted, they change it by {', '.join(f'{gap:.1e}' for gap in seen)} nats"
