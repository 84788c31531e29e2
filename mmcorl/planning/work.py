"""What comes and goes with the batches of a process: caches, activations, logits and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmcorl.agents.head import TOKENS_AT_ONCE
from mmcorl.config import AgentConfig, Config
from mmcorl.planning import memory
from mmcorl.planning.held import shares, width_of
from mmcorl.planning.items import Item
from mmcorl.planning.load import Load
from mmcorl.planning.memory import FLOAT32
from mmcorl.planning.shapes import ModelShape, Tower

_CAST = 2
"""Bytes of a number in bfloat16."""


@dataclass(frozen=True)
class _Moment:
    """Bytes at one moment."""

    activations: int = 0
    logits: int = 0
    gradients: int = 0
    casts: int = 0
    """Copies of weights in bfloat16, which autocast keeps for as long as a forward pass or a rollout lasts."""
    cache: int = 0

    @property
    def total(self) -> int:
        return self.activations + self.logits + self.gradients + self.casts + self.cache


def work(config: Config, agent: AgentConfig, shape: ModelShape, load: Load) -> list[Item]:
    """What one process of `agent` holds for its largest batches."""
    sampling = _sampling(config, agent, shape, load)
    idle = _Moment()
    forward, backward = (idle, idle) if agent.frozen else _update(config, agent, shape, load)
    stepping = _Moment(gradients=shares(config, agent, shape).gradients)
    moments = (sampling, forward, backward, stepping)
    gathered = shares(config, agent, shape).gathered
    engine = config.rollouts.engine
    sampled = shares(config, agent, shape, whole=True).gathered if engine == "transformers" else 0
    return [
        Item("gradients", *(m.gradients for m in moments)),
        Item("weights cast to bfloat16", *(m.casts for m in moments)),
        Item("weights gathered from the ranks", sampled, gathered, gathered),
        Item("key-value cache", sampling.cache),
        Item("activations", *(m.activations for m in moments)),
        Item("logits", *(m.logits for m in moments)),
    ]  # fmt: skip


def _sampling(config: Config, agent: AgentConfig, shape: ModelShape, load: Load) -> _Moment:
    """The fuller of two moments: the prompts are read, or the last token is drawn."""
    # Gradients are gone since the last update, but ZeRO's third stage keeps their room.
    gradients = shares(config, agent, shape).gradients if agent.sharding == "zero3" else 0
    if config.rollouts.engine == "vllm":
        return _Moment(gradients=gradients)
    width = width_of(agent)
    a_token = memory.cache(shape.text, width)
    casts = _cast_weights(agent, shape)
    prompts = load.prompts * load.prompt
    reading = _Moment(
        activations=max(
            prompts * (memory.layer_working(shape.text, width) + load.prompt * (1 + width)),
            _vision_working(shape, load.prompts * load.patches, width),
        ),
        gradients=gradients,
        casts=casts,
        cache=prompts * a_token,
    )
    rows = load.prompts * load.samples
    # A layer's keys or values are joined with the new ones in a new place.
    cache = rows * (load.prompt + load.completion) * (a_token + a_token // shape.text.layers // 2)
    drawing = _Moment(
        logits=memory.drawing(rows, shape.vocabulary), gradients=gradients, casts=casts, cache=cache
    )
    return _fullest([reading, drawing])


def _update(config: Config, agent: AgentConfig, shape: ModelShape, load: Load) -> tuple[_Moment, _Moment]:
    """The end of the forward pass, and the fullest moment of the backward pass."""
    width = width_of(agent)
    text, vision = _text_layers(agent, shape, load), _vision_layers(agent, shape, load)
    images = load.rows * load.patches // shape.patches_per_token
    # the mask, and what joins images and text
    joined = load.tokens * load.row * (1 + width) + shape.projector * width * images
    kept = text.kept + vision.kept + joined + 3 * load.tokens * shape.text.hidden * FLOAT32
    turn = min(load.targets, TOKENS_AT_ONCE)
    logits = memory.head_turn(turn, shape.vocabulary, width, backward=False)
    all_gradients = shares(config, agent, shape).gradients
    earlier = all_gradients if load.batches > 1 else 0
    casts = _cast_weights(agent, shape)
    images_read = _vision_working(shape, load.rows * load.patches, width)
    forward = [
        _Moment(kept, logits, earlier, casts),
        # frozen images, or the reference, which goes first and keeps nothing
        _Moment(max(images_read, text.working if config.loss.beta > 0 else 0), logits, earlier, casts),
    ]
    kept_casts = 0 if agent.gradient_checkpointing else casts
    # The head's gradient adds up over turns, and then to the embedding's, before it joins the others.
    head_gradient = shape.head * FLOAT32 if _trains_head(agent) and agent.sharding == "none" else 0
    begun = max(earlier, head_gradient)
    backward = [
        _Moment(
            kept,
            memory.head_turn(turn, shape.vocabulary, width, backward=True),
            begun + head_gradient,
            kept_casts,
        ),
        _Moment(kept + text.working, 0, begun, kept_casts),
        _Moment(
            vision.kept + max(vision.working, text.layer + text.working),
            0,
            all_gradients + head_gradient,
            kept_casts // shape.text.layers,
        ),
    ]
    return _fullest(forward), _fullest(backward)


def _fullest(moments: Sequence[_Moment]) -> _Moment:
    return max(moments, key=lambda moment: moment.total)


@dataclass(frozen=True)
class _Layers:
    """Bytes of a tower at work on a micro-batch."""

    kept: int = 0
    """What stays until the backward pass."""
    layer: int = 0
    """What one layer keeps where nothing is recomputed."""
    working: int = 0
    """What lives only while a layer is differentiated, and recomputed if it is."""


def _text_layers(agent: AgentConfig, shape: ModelShape, load: Load) -> _Layers:
    eager = agent.attention == "eager"
    layer = memory.layer_kept(
        shape.text,
        width_of(agent),
        scores_row=load.row if eager else 0,
        own_trained=agent.lora is None and "text" not in agent.freeze,
    )
    return _layers(agent, shape.text, layer, load.tokens)


def _vision_layers(agent: AgentConfig, shape: ModelShape, load: Load) -> _Layers:
    parts = agent.lora.parts if agent.lora is not None else {"vision"} - set(agent.freeze)
    if shape.vision is None or "vision" not in parts:
        return _Layers()
    return _layers(
        agent,
        shape.vision,
        memory.layer_kept(shape.vision, width_of(agent), own_trained=agent.lora is None),
        load.rows * load.patches,
    )


def _layers(agent: AgentConfig, tower: Tower, layer: int, tokens: int) -> _Layers:
    working = memory.layer_working(tower, width_of(agent))
    if agent.gradient_checkpointing:
        return _Layers(tower.layers * memory.layer_checkpoint(tower) * tokens, 0, (layer + working) * tokens)
    return _Layers(tower.layers * layer * tokens, layer * tokens, working * tokens)


def _vision_working(shape: ModelShape, patches: int, width: int) -> int:
    return 0 if shape.vision is None else patches * memory.layer_working(shape.vision, width)


def _trains_head(agent: AgentConfig) -> bool:
    return agent.lora is None and "text" not in agent.freeze


def _cast_weights(agent: AgentConfig, shape: ModelShape) -> int:
    """Bytes of the copies in bfloat16 that autocast keeps of trained weights, also of those that ZeRO has taken apart since.

    Weights that are held or gathered in bfloat16 need none.
    """
    if agent.dtype != "bfloat16" or agent.lora is not None or agent.frozen or agent.sharding == "fsdp2":
        return 0
    return sum(_CAST * count for part, count in shape.linear.items() if part not in agent.freeze)
