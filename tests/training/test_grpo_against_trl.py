"""One batch through TRL's GRPOTrainer and through these functions: same loss, same gradients.

TRL is given the sampled tokens, the sampling log-probabilities and the rewards; advantages, importance weights, old
log-probabilities, KL and the aggregation are its own. The log-probabilities on this side are computed naively.
"""

from pathlib import Path

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mmcorl.training.grpo import (
    batch_loss,
    completion_weights,
    group_advantages,
    sampler_weights,
    token_losses,
)

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore")

VOCABULARY, GROUP, LOCAL_BATCH, MAX_TOKENS, TEMPERATURE, BETA = 24, 4, 2, 6, 0.7, 0.05
PROMPTS = [[5, 6, 7], [8, 9]]
LENGTHS = [3, 6, 1, 4, 2, 2, 5, 6]
REWARDS = [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]


def tiny_llm(seed):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).train()


def tokenizer():
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3} | {
        f"w{index}": index for index in range(4, VOCABULARY)
    }
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def rollouts():
    """(completions, sampling log-probs): random tokens, and an engine that disagrees with the policy."""
    generator = torch.Generator().manual_seed(3)
    completions = [
        torch.randint(4, VOCABULARY, (length,), generator=generator).tolist() for length in LENGTHS
    ]
    policy = tiny_llm(0)
    noise = [0.8 * torch.randn(length, generator=generator) for length in LENGTHS]
    exact = [naive_logprobs(policy, row, completions[row]).detach() for row in range(len(LENGTHS))]
    return completions, [(one + other).tolist() for one, other in zip(exact, noise, strict=True)]


def naive_logprobs(model, row, completion):
    """One unpadded forward over prompt and completion, at the sampling temperature."""
    prompt = PROMPTS[row // GROUP]
    logits = (
        model(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1] / TEMPERATURE
    )
    return logits.log_softmax(-1).gather(1, torch.tensor(completion).unsqueeze(1)).squeeze(1)


def batch_logprobs(model, completions):
    rows = [naive_logprobs(model, row, completion) for row, completion in enumerate(completions)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def moved(model):
    """The policy a few updates later, where ratios differ from 1 and clipping acts."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)


def gradients_of(model):
    return {
        name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None
    }


def trl_loss_and_gradients(folder: Path, kind, scale, correction):
    completions, sampling = rollouts()
    rewards = [reward for group in REWARDS for reward in group]
    config = trl.GRPOConfig(
        output_dir=str(folder),
        loss_type=kind,
        scale_rewards=scale,
        num_generations=GROUP,
        per_device_train_batch_size=LOCAL_BATCH,
        gradient_accumulation_steps=len(LENGTHS) // LOCAL_BATCH,
        max_completion_length=MAX_TOKENS,
        temperature=TEMPERATURE,
        epsilon=0.2,
        epsilon_high=0.28,
        beta=BETA,
        use_bias_correction_kl=False,
        vllm_importance_sampling_correction=correction != "none",
        vllm_importance_sampling_mode="token_truncate" if correction == "none" else correction,
        bf16=False,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    model = tiny_llm(0)
    tiny_llm(1).save_pretrained(folder / "reference")
    model.config._name_or_path = str(folder / "reference")  # where the trainer loads its reference from
    prompt_ids = [prompt for prompt in PROMPTS for _ in range(GROUP)]
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: rewards,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["w5 w6 w7", "w8 w9"]}),
        processing_class=tokenizer(),
        rollout_func=lambda prompts, trainer: {
            "prompt_ids": prompt_ids,
            "completion_ids": completions,
            "logprobs": sampling,
        },
    )
    # Its sampler correction acts with vLLM only, which the constructor would start; the tokens are given already.
    trainer.use_vllm, trainer._last_loaded_step = True, 0
    trainer.current_gradient_accumulation_steps = config.gradient_accumulation_steps
    model.train()
    batch = trainer._generate_and_score_completions([{"prompt": "w5"}] * GROUP + [{"prompt": "w8"}] * GROUP)
    if batch.get("old_per_token_logps") is None:  # it keeps them only where it needs them
        batch["old_per_token_logps"] = batch_logprobs(model, completions).detach()
    moved(model)
    total = torch.zeros(())
    for start in range(0, len(LENGTHS), LOCAL_BATCH):
        part = {
            key: value[start : start + LOCAL_BATCH] if torch.is_tensor(value) and value.dim() else value
            for key, value in batch.items()
        }
        loss = trainer.compute_loss(model, part)
        loss.backward()
        total += loss.detach()
    return total, gradients_of(model)


def own_loss_and_gradients(kind, scale, correction):
    completions, sampling = rollouts()
    model = tiny_llm(0)
    mask = torch.arange(max(LENGTHS)).expand(len(LENGTHS), -1) < torch.tensor(LENGTHS).unsqueeze(1)
    old = batch_logprobs(model, completions).detach()
    reference = batch_logprobs(tiny_llm(1), completions).detach()
    engine = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in sampling], batch_first=True)
    advantages = group_advantages(torch.tensor(REWARDS), torch.tensor([True, True]), scale).flatten()
    moved(model)
    losses = token_losses(
        batch_logprobs(model, completions),
        old,
        advantages,
        clip_low=0.2,
        clip_high=0.28,
        weights_it=sampler_weights(old, engine, mask, correction, cap=3.0),
        reference_logprobs_it=reference,
        beta=BETA,
    )
    weights = completion_weights(torch.tensor(LENGTHS), kind, MAX_TOKENS, bnpo_completions=LOCAL_BATCH)
    loss = batch_loss(losses, mask, weights)
    loss.backward()
    return loss.detach(), gradients_of(model)


@pytest.mark.parametrize(
    ("kind", "scale", "correction"),
    [
        ("grpo", "group", "token_truncate"),
        ("bnpo", "group", "token_truncate"),
        ("dr_grpo", "none", "token_mask"),
        ("dapo", "batch", "sequence_truncate"),
        ("dapo", "group", "sequence_mask"),
        ("grpo", "group", "none"),
    ],
)
def test_loss_and_gradients_equal_trl(tmp_path, kind, scale, correction):
    expected_loss, expected = trl_loss_and_gradients(tmp_path, kind, scale, correction)
    loss, gradients = own_loss_and_gradients(kind, scale, correction)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-5, atol=1e-6)
    assert gradients and gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert (gradient - expected[name]).norm() <= 1e-5 * expected[name].norm(), name
