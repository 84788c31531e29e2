"""Adapters change nothing at first, learn what an independent computation says, and are saved, found and merged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import peft
import pytest
import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel

from mmcorl.agents import contract
from mmcorl.agents.adapters import BasePolicy, has_adapters, load_adapters, merge, merged_weights
from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.lengths import PromptLengths
from mmcorl.cli import check
from mmcorl.config import AgentConfig
from mmcorl.errors import MmcorlError

LORA = {"rank": 4, "alpha": 8, "parts": ["text", "projector", "vision"]}


def load(folder, name="ann", seed=0, **settings):
    return Agent.load(name, AgentConfig.model_validate({"model": str(folder), **settings}), seed=seed)


def adapters_of(model):
    return {name: weight for name, weight in model.named_parameters() if ".lora_" in name}


def trained(agent, size=0.05):
    """The agent with adapters that do something."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in adapters_of(agent.model).values():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=size)
    return agent


def saved(agent, folder):
    folder.mkdir()
    agent.snapshot()(folder)
    return folder


def groups_of(agent, problems=3):
    """Completions of a text and of problems with images; which tokens they are is of no matter."""
    asked = contract.sample_problems(images=agent.backbone.sees_images)[-problems:]
    generator = torch.Generator().manual_seed(3)
    return [
        TokenGroup(
            agent.encode(p), [torch.randint(5, 90, (n,), generator=generator).sort().values for n in (5, 3)]
        )
        for p in asked
    ]


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl", "qwen3"])
def test_untrained_adapters_change_nothing_and_know_their_part(tiny_folder, family):
    parts = LORA["parts"] if family != "qwen3" else ["text"]
    agent = load(tiny_folder(family), lora=LORA | {"parts": parts})
    plain = load(tiny_folder(family))
    assert isinstance(agent.model, PreTrainedModel) and type(agent.model) is type(plain.model)
    groups = groups_of(agent)
    with torch.no_grad():
        assert torch.equal(agent.policy.logprobs(groups), plain.policy.logprobs(groups))
    learning = {name for name, w in agent.model.named_parameters() if w.requires_grad}
    assert learning == adapters_of(agent.model).keys()
    assert {agent.backbone.part_of(name) for name in learning} == set(parts)
    assert all(w.dtype == torch.float32 for w in adapters_of(agent.model).values())


def test_targets_choose_the_layers_and_the_head_never_has_one(tiny_folder):
    folder = tiny_folder("internvl")
    assert {
        re.split(r"\.lora_", name)[0].rpartition(".")[2]
        for name in adapters_of(load(folder, lora={"rank": 2, "targets": ["q_proj", "v_proj"]}).model)
    } == {"q_proj", "v_proj"}
    assert not any("lm_head" in name for name in adapters_of(load(folder, lora=LORA).model))
    with pytest.raises(
        MmcorlError, match=r"agents\.ann\.lora\.targets names qkv, and linear layers of text are .*q_proj"
    ):
        load(folder, lora={"targets": ["qkv"]})
    with pytest.raises(MmcorlError, match=r"agents\.ann\.lora\.parts=\['vision'\] names parts"):
        load(tiny_folder("qwen3"), lora={"parts": ["vision"]})


def test_the_first_weights_are_those_of_seed_and_name(tiny_folder):
    folder = tiny_folder("qwen2_5_vl")

    def drawn(name, seed):
        return adapters_of(load(folder, name, seed, lora=LORA).model)

    one, same = drawn("ann", 5), drawn("ann", 5)
    assert all(torch.equal(one[name], same[name]) for name in one)
    for other in (drawn("bob", 5), drawn("ann", 6)):
        assert not any(torch.equal(one[name], other[name]) for name in one if "lora_A" in name)
    assert all(not weight.any() for name, weight in one.items() if "lora_B" in name)


def test_gradients_are_those_of_peft_and_a_plain_loss(tiny_folder):
    """The same adapters in peft's own model, one completion a row, the loss by transformers' own labels."""
    agent = trained(load(tiny_folder("qwen2_5_vl"), lora=LORA))
    groups = groups_of(agent)
    agent.policy.shared_logprobs(groups).sum().backward()

    base = AutoModelForImageTextToText.from_pretrained(tiny_folder("qwen2_5_vl"), dtype=torch.float32)
    targets = sorted({name.split(".lora_")[0] for name in adapters_of(agent.model)})
    model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets))
    theirs = {name.removeprefix("base_model.model."): weight for name, weight in model.named_parameters()}
    with torch.no_grad():
        for name, weight in adapters_of(agent.model).items():
            theirs[name].copy_(weight)
    for group in groups:
        for completion in group.completions:
            ids = torch.cat([group.prompt.ids, completion])[None]
            labels = ids.clone()
            labels[:, : len(group.prompt.ids)] = -100
            # Placeholders are banned as outputs: their share of the probability is taken out by hand.
            inputs = {
                k: torch.nn.functional.pad(v, (0, len(completion)))[None]
                for k, v in group.prompt.tokens.items()
            }
            logits = model(input_ids=ids, **inputs, **group.prompt.vision).logits.float()
            logits = logits.index_fill(-1, torch.tensor(sorted(agent.backbone.placeholder_ids())), -torch.inf)
            loss = torch.nn.functional.cross_entropy(
                logits[0, :-1], labels[0, 1:], ignore_index=-100, reduction="sum"
            )
            (-loss).backward()
    for name, weight in adapters_of(agent.model).items():
        assert weight.grad is not None and theirs[name].grad is not None
        scale = float(theirs[name].grad.abs().max()) + 1
        assert torch.allclose(weight.grad, theirs[name].grad, rtol=0, atol=1e-6 * scale), name


@pytest.mark.parametrize("checkpointing", [False, True])
def test_tree_rows_are_plain_rows_with_adapters_too(tiny_folder, checkpointing):
    agent = trained(load(tiny_folder("internvl"), lora=LORA, gradient_checkpointing=checkpointing))
    groups = groups_of(agent)
    results = []
    for logprobs in (agent.policy.shared_logprobs, agent.policy.plain_logprobs):
        agent.model.zero_grad()
        values = logprobs(groups)
        values.sum().backward()
        results.append((values.detach(), {n: w.grad.clone() for n, w in adapters_of(agent.model).items()}))
    (shared, shared_gradients), (plain, plain_gradients) = results
    assert torch.allclose(shared, plain, atol=1e-5)
    for name, gradient in plain_gradients.items():
        assert torch.allclose(shared_gradients[name], gradient, atol=1e-5 * (1 + float(gradient.abs().max())))


@pytest.mark.parametrize("settings", [{}, {"gradient_checkpointing": True}, {"dtype": "bfloat16"}])
def test_the_reference_is_the_model_it_began_with_and_leaves_no_trace(tiny_folder, settings):
    agent = trained(load(tiny_folder("qwen2_5_vl"), lora=LORA, **settings))
    groups = groups_of(agent)

    def gradients(with_reference):
        agent.model.zero_grad()
        values = agent.policy.logprobs(groups)
        if with_reference:
            BasePolicy(agent.policy).logprobs(groups)
        values.sum().backward()
        return {name: weight.grad.clone() for name, weight in adapters_of(agent.model).items()}

    alone, beside = gradients(False), gradients(True)
    assert all(torch.equal(alone[name], beside[name]) for name in alone)
    plain = load(tiny_folder("qwen2_5_vl"), **settings)
    if settings.get("dtype") == "bfloat16":
        for weight in plain.model.parameters():  # adapters leave the weights in the type of the forward pass
            weight.data = weight.data.bfloat16()
    reference = BasePolicy(agent.policy).logprobs(groups)
    with torch.no_grad():
        assert torch.equal(reference, plain.policy.logprobs(groups))
        assert not torch.equal(reference, agent.policy.logprobs(groups))
    assert all(weight.requires_grad for weight in adapters_of(agent.model).values())


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl", "qwen3_vl", "gemma3", "llama"])
def test_merged_weights_do_what_the_adapters_do_and_leave_the_model_alone(tiny_folder, tmp_path, family):
    agent = trained(load(tiny_folder(family), lora={"rank": 4, "alpha": 8}))
    groups = groups_of(agent)
    with torch.no_grad():
        expected = agent.policy.logprobs(groups)
    before = {name: tensor.clone() for name, tensor in agent.model.state_dict().items()}
    weights = dict(merged_weights(agent.model))
    after = agent.model.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)

    plain = load(tiny_folder(family))
    assert weights.keys() == plain.model.state_dict().keys()
    plain.model.load_state_dict(weights)
    with torch.no_grad():
        assert torch.allclose(plain.policy.logprobs(groups), expected, atol=1e-5)

    merged = merge(agent.model)
    assert not has_adapters(merged)
    assert merge(merged) is merged
    merged.save_pretrained(tmp_path)
    reloaded = type(merged).from_pretrained(tmp_path).state_dict()
    assert reloaded.keys() == weights.keys()
    assert all(torch.equal(reloaded[name], weights[name]) for name in weights)


def test_a_saved_folder_holds_the_adapters_alone_and_is_loaded_wherever_a_model_is(tiny_folder, tmp_path):
    agent = trained(load(tiny_folder("qwen2_5_vl"), lora=LORA))
    folder = saved(agent, tmp_path / "saved")
    assert not (folder / "config.json").exists() and not (folder / "model.safetensors").exists()
    groups = groups_of(agent)
    again = load(folder, "bob", seed=9, lora=LORA)
    ours, theirs = adapters_of(agent.model), adapters_of(again.model)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    merged = load(folder)
    assert not has_adapters(merged.model)
    with torch.no_grad():
        expected = agent.policy.logprobs(groups)
        assert torch.equal(again.policy.logprobs(groups), expected)
        assert torch.allclose(merged.policy.logprobs(groups), expected, atol=1e-5)
    problem = contract.sample_problems(images=True)[-1]
    assert PromptLengths(folder)(problem) == len(agent.encode(problem).ids)
    # Others read it too.
    base = AutoModelForImageTextToText.from_pretrained(tiny_folder("qwen2_5_vl"), dtype=torch.float32)
    by_peft = peft.PeftModel.from_pretrained(base, folder)
    read = {n.removeprefix("base_model.model."): w for n, w in by_peft.named_parameters()}
    assert all(torch.equal(read[name], weight) for name, weight in ours.items())


def test_the_contract_holds_for_a_folder_of_adapters(tiny_folder, tmp_path):
    folder = saved(trained(load(tiny_folder("qwen3"), lora={"rank": 2})), tmp_path / "saved")
    assert check.main([str(folder)]) == 0


def test_a_base_that_is_not_there_is_named(tiny_folder, tmp_path):
    folder = saved(load(tiny_folder("qwen3"), lora={"rank": 2}), tmp_path / "saved")
    config = json.loads((folder / "adapter_config.json").read_text())
    assert Path(config["base_model_name_or_path"]).is_absolute()
    config["base_model_name_or_path"] = str(tmp_path / "gone")
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(MmcorlError, match=r"saved holds adapters of .*gone, which does not exist"):
        load(folder)


def test_adapters_of_other_settings_are_refused_by_name(tiny_folder, tmp_path):
    folder = saved(load(tiny_folder("qwen3"), lora={"rank": 2, "alpha": 4}), tmp_path / "saved")
    with pytest.raises(MmcorlError, match=r"of rank 2 and alpha 4; set agents\.ann\.lora\.rank=2"):
        load(folder, lora={"rank": 4, "alpha": 4})
    with pytest.raises(MmcorlError, match=r"of other layers than agents\.ann\.lora asks for"):
        load(folder, lora={"rank": 2, "alpha": 4, "targets": ["q_proj"]})
    agent = load(tiny_folder("qwen3"), lora={"rank": 2, "alpha": 4})
    plain = (folder / "adapter_config.json").read_text()
    for key, value in (("use_dora", True), ("peft_type", "LOHA")):
        (folder / "adapter_config.json").write_text(json.dumps(json.loads(plain) | {key: value}))
        with pytest.raises(MmcorlError, match="another kind than plain LoRA"):
            load(folder)
    (folder / "adapter_config.json").write_text(plain)
    (folder / "adapter_model.safetensors").write_bytes(b"no header")
    with pytest.raises(MmcorlError, match=r"adapter_model\.safetensors cannot be read"):
        load_adapters("ann", agent.model, folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quantize": "4bit"}, "set lora.rank, or quantize=null"),
        ({"lora": {}, "freeze": ["text"]}, "lora.parts gives text adapters, and freeze"),
        ({"lora": {}, "frozen": True}, "frozen=true trains nothing"),
    ],
)
def test_settings_that_contradict_adapters(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        AgentConfig.model_validate({"model": "m", **settings})


def test_a_missing_package_is_named_with_what_to_install(tiny_folder, monkeypatch):
    monkeypatch.setattr("mmcorl.agents.extras.find_spec", lambda package: None)
    with pytest.raises(MmcorlError, match=r"agents\.ann\.lora needs peft.*pip install 'mmcorl\[lora\]'"):
        load(tiny_folder("qwen3"), lora={"rank": 2})
    with pytest.raises(MmcorlError, match=r"agents\.ann\.quantize=4bit needs bitsandbytes"):
        load(tiny_folder("qwen3"), lora={"rank": 2}, quantize="4bit")


@pytest.mark.parametrize(("quantize", "layer"), [("4bit", "Linear4bit"), ("8bit", "Linear8bitLt")])
def test_quantised_text_layers_sample_and_learn(tiny_folder, quantize, layer):
    settings = {"lora": {"rank": 4}, "quantize": quantize, "gradient_checkpointing": True}
    agent = trained(load(tiny_folder("qwen2_5_vl"), **settings))
    kinds = {n: type(m).__name__ for n, m in agent.model.named_modules() if isinstance(m, torch.nn.Linear)}
    small = {name for name, kind in kinds.items() if kind == layer}
    assert {agent.backbone.part_of(f"{name}.weight") for name in small} == {"text"}
    assert len(small) == 14 and kinds["lm_head"] == "Linear"
    # Sampling first: what it leaves behind must not hinder learning.
    problems = contract.sample_problems(images=True)[-2:]
    agent.rollout(problems, samples=2, max_tokens=4, noise_key=("q",))
    groups = groups_of(agent)
    shared, plain = agent.policy.shared_logprobs(groups), agent.policy.plain_logprobs(groups)
    assert torch.allclose(shared, plain, atol=1e-5)
    shared.sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in adapters_of(agent.model).values())
    # Taken out of their few bits, the weights do the same.
    whole = load(tiny_folder("qwen2_5_vl"))
    weights = dict(merged_weights(agent.model))
    assert weights.keys() == whole.model.state_dict().keys()
    whole.model.load_state_dict(weights)
    with torch.no_grad():
        assert torch.allclose(whole.policy.logprobs(groups), shared, atol=1e-4)
    with pytest.raises(MmcorlError, match="load the model without quantize"):
        merge(agent.model)


def test_layers_in_8_bits_do_not_fill_the_log(tiny_folder, caplog):
    agent = load(tiny_folder("qwen3"), lora={"rank": 2}, quantize="8bit")
    agent.rollout(contract.sample_problems(images=False)[:1], samples=2, max_tokens=4, noise_key=("q",))
    assert not [record for record in caplog.records if record.name.startswith("bitsandbytes")]
