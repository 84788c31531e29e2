"""Prompts: what a model reads is what the problem says."""

from __future__ import annotations

import pytest
from PIL import Image

from mmcorl.agents.agent import Agent
from mmcorl.agents.processors import PromptBuilder, question_text
from mmcorl.agents.tiny import FAMILIES
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig, RolloutsConfig
from mmcorl.errors import MmcorlError, PromptTooLong
from mmcorl.problems import Problem

VISUAL = [name for name, family in FAMILIES.items() if family.processor]
GREY = Image.new("RGB", (84, 84), (128, 128, 128))
CHOICE = Problem("c", "Which is it?", (), ("a cat", "a dog"), "choice")


def test_options_stand_a_line_each_before_the_instruction():
    assert (
        question_text(CHOICE, PromptConfig(instruction="Answer."))
        == "Which is it?\nA. a cat\nB. a dog\nAnswer."
    )


@pytest.mark.parametrize("family", VISUAL)
def test_images_stand_where_their_markers_do(tiny_agent, family):
    agent = tiny_agent(family)
    text = agent.encode(Problem("p", "First <image> then <image> done", (GREY, GREY))).text
    placeholder, _ = agent.backbone.image_frame(agent.processor)
    between = text[text.index("First") : text.index("done")]
    assert between.count(placeholder) == text.count(placeholder) == 2
    assert "<image>" not in text.replace(placeholder, "")
    assert placeholder in between[: between.index("then")]


def test_an_image_without_a_marker_comes_first(tiny_agent):
    text = tiny_agent("qwen2_5_vl").encode(Problem("p", "How many?", (GREY,))).text
    assert text.index("<|image_pad|>") < text.index("How many?")


@pytest.mark.parametrize("family", ["qwen2_5_vl", "gemma3", "llama", "qwen3"])
def test_the_system_text_is_in_every_prompt_once(tiny_folder, family):
    agent = Agent.load(
        "a", AgentConfig(model=str(tiny_folder(family))), PromptConfig(system="You are careful.")
    )
    text = agent.encode(CHOICE).text
    assert text.count("You are careful.") == 1
    assert text.index("You are careful.") < text.index("Which is it?")


def test_a_template_that_drops_the_system_turn_gets_it_before_the_question(tiny_folder):
    agent = Agent.load(
        "a", AgentConfig(model=str(tiny_folder("qwen2"))), PromptConfig(system="You are careful.")
    )
    agent.prompts.tokenizer.chat_template = (
        "{% for m in messages if m.role == 'user' %}[user]{{ m.content }}{% endfor %}[assistant]"
    )
    text = agent.encode(CHOICE).text
    assert text.startswith("[user]You are careful.\n\nWhich is it?")


def test_a_model_without_a_template_reads_plain_text(tiny_folder):
    agent = Agent.load("a", AgentConfig(model=str(tiny_folder("llama"))), PromptConfig(instruction="Go."))
    agent.prompts.tokenizer.chat_template = None
    assert agent.encode(CHOICE).text == "Which is it?\nA. a cat\nB. a dog\nGo.\n"


def test_a_begin_token_is_not_doubled(tiny_agent):
    for family in ("llama", "gemma3"):
        agent = tiny_agent(family)
        begin = agent.prompts.tokenizer.bos_token_id
        assert agent.encode(CHOICE).ids.tolist().count(begin) == 1


def test_a_long_prompt_is_refused_with_its_id_and_the_setting(tiny_folder):
    agent = Agent.load(
        "a", AgentConfig(model=str(tiny_folder("qwen2"))), rollouts=RolloutsConfig(max_prompt_tokens=5)
    )
    with pytest.raises(PromptTooLong, match=r"'c' has \d+ tokens.*rollouts.max_prompt_tokens=5"):
        agent.encode(CHOICE)


def test_a_text_model_refuses_images_by_name(tiny_agent):
    with pytest.raises(MmcorlError, match="problem 'p' has an image"):
        tiny_agent("qwen2").encode(Problem("p", "How many?", (GREY,)))


def test_tiling_adds_image_tokens_only_when_asked_for(tiny_folder):
    picture = Problem("p", "How many?", (Image.new("RGB", (252, 168)),))
    lengths = {}
    for tiling in (False, True):
        images = ImagesConfig(tiling=tiling)
        agent = Agent.load("a", AgentConfig(model=str(tiny_folder("internvl"))), images=images)
        prompt = agent.encode(picture)
        lengths[tiling] = len(prompt.ids)
        assert agent.rollout([picture], samples=2, max_tokens=2, noise_key=(0,))
    assert lengths[True] > 3 * lengths[False] - 60 > lengths[False] - 60


def test_problems_of_two_data_sets_may_share_an_id(tiny_agent):
    """Rows without ids are numbered from 0, in the training set as in the held-out one."""
    agent = tiny_agent("qwen2")
    train, heldout = Problem("0", "What is 2 + 3?"), Problem("0", "What is 4 + 5?")
    assert "2 + 3" in agent.encode(train).text
    assert "4 + 5" in agent.encode(heldout).text
    assert "2 + 3" in agent.encode(train).text


@pytest.mark.parametrize(
    ("family", "problem"),
    [
        ("qwen2_5_vl", Problem("odd", "What is <|image_pad|>?")),
        ("internvl", Problem("odd", "What is <IMG_CONTEXT>?", (GREY,))),
        ("gemma3", Problem("odd", "What is <start_of_image>?", (GREY,))),
        ("qwen2_5_vl", Problem("odd", "How long?", (Image.new("RGB", (3000, 10)),))),
    ],
)
def test_what_the_processor_refuses_is_named(tiny_agent, family, problem):
    with pytest.raises(MmcorlError, match="problem 'odd'"):
        tiny_agent(family).encode(problem)


def test_recent_prompts_are_kept_and_old_ones_let_go(tiny_agent):
    agent = tiny_agent("qwen2_5_vl")
    problems = [Problem(str(i), "How many?", (GREY,)) for i in range(3)]
    size = agent.encode(problems[0]).nbytes()
    built = agent.prompts
    builder = PromptBuilder(
        built.model, built.processor, built.backbone, built.prompt, built.images, 4096, cache_bytes=2 * size
    )
    first = builder.build(problems[0])
    assert builder.build(problems[0]) is first
    builder.build(problems[1])
    builder.build(problems[2])
    assert builder.build(problems[0]) is not first
