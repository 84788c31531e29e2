"""Chat formats: the special tokens, stop tokens and templates of the families, and tokenizers that speak them."""

from __future__ import annotations

from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerFast

from mmcorl.agents.tiny.vocabulary import train_tokenizer


@dataclass(frozen=True)
class ChatFormat:
    """How one family writes a conversation.

    `stops` are all tokens that end an answer, as the family's generation config lists them; `eos` is the one
    the tokenizer calls its end. `roles` are named tokens that the family's processor reads from the tokenizer.
    """

    specials: tuple[str, ...]
    template: str
    eos: str
    pad: str
    stops: tuple[str, ...]
    bos: str | None = None
    specials_first: bool = False
    roles: dict[str, str] = field(default_factory=dict)

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """A tokenizer of this format with the tiny vocabulary; pads on the left, as for generation."""
        return PreTrainedTokenizerFast(
            tokenizer_object=train_tokenizer(self.specials, specials_first=self.specials_first, bos=self.bos),
            bos_token=self.bos,
            eos_token=self.eos,
            pad_token=self.pad,
            extra_special_tokens=self.roles,
            chat_template=self.template,
            padding_side="left",
            clean_up_tokenization_spaces=False,
            model_max_length=32768,
        )


# Contents may be strings, or lists of parts.
_PARTS = (
    "{%- if message.content is string -%}{{- message.content -}}{%- else -%}"
    "{%- for part in message.content -%}"
    "{%- if part.type == 'image' -%}{{- 'IMAGE' -}}{%- else -%}{{- part.text -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
)


def _chatml(*, default_system: str | None, image: str | None) -> str:
    """A ChatML template. Without `image` contents are plain strings; with it they may also be lists of parts."""
    system = ""
    if default_system is not None:
        system = (
            "{%- if messages[0].role != 'system' -%}"
            "{{- '<|im_start|>system\\n" + default_system + "<|im_end|>\\n' -}}"
            "{%- endif -%}"
        )
    content = "{{- message.content -}}" if image is None else _PARTS.replace("IMAGE", image)
    return (
        system + "{%- for message in messages -%}"
        "{{- '<|im_start|>' + message.role + '\\n' -}}" + content + "{{- '<|im_end|>\\n' -}}"
        "{%- endfor -%}"
        "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
    )


_LLAMA_TEMPLATE = (
    "{{- bos_token -}}"
    "{%- for message in messages -%}"
    "{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}"
    "{{- message.content | trim + '<|eot_id|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}"
    "{%- endif -%}"
)

# Gemma has no system turn: its text opens the first user turn. The assistant is called `model`.
_GEMMA_TEMPLATE = (
    "{%- macro written(content) -%}"
    "{%- if content is string -%}{{- content | trim -}}{%- else -%}"
    "{%- for part in content -%}"
    "{%- if part.type == 'image' -%}{{- '<start_of_image>' -}}{%- else -%}{{- part.text | trim -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{%- endmacro -%}"
    "{{- bos_token -}}"
    "{%- set system = written(messages[0].content) + '\\n\\n' if messages[0].role == 'system' else '' -%}"
    "{%- for message in (messages[1:] if system else messages) -%}"
    "{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}"
    "{{- (system if loop.first else '') + written(message.content) + '<end_of_turn>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}"
)

# As Vicuna writes it; the system text stands before the first turn without a name.
_VICUNA_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}{{- 'USER: ' -}}"
    "{%- elif message.role == 'assistant' -%}{{- 'ASSISTANT: ' -}}{%- endif -%}"
    + _PARTS.replace("IMAGE", "<image>\\n")
    + "{{- '</s>' if message.role == 'assistant' else ' ' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
)
_SMOLVLM_TEMPLATE = (
    "{{- '<|im_start|>' -}}{%- for message in messages -%}"
    "{{- message.role | capitalize + ': ' -}}"
    + _PARTS.replace("IMAGE", "<image>")
    + "{{- '<end_of_utterance>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"
)
_GLM_TEMPLATE = (
    "{{- '[gMASK]<sop>' -}}{%- for message in messages -%}"
    "{{- '<|' + message.role + '|>\\n' -}}"
    + _PARTS.replace("IMAGE", "<|begin_of_image|><|image|><|end_of_image|>")
    + "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}"
)
_MISTRAL_TEMPLATE = (
    "{{- bos_token -}}{%- for message in messages -%}"
    "{%- if message.role == 'system' -%}{{- '[SYSTEM_PROMPT]' -}}"
    "{%- elif message.role == 'user' -%}{{- '[INST]' -}}{%- endif -%}"
    + _PARTS.replace("IMAGE", "[IMG]")
    + "{%- if message.role == 'system' -%}{{- '[/SYSTEM_PROMPT]' -}}"
    "{%- elif message.role == 'user' -%}{{- '[/INST]' -}}{%- else -%}{{- eos_token -}}{%- endif -%}"
    "{%- endfor -%}"
)

_ASSISTANT = "You are a helpful assistant."
_QWEN_TEXT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_VISION = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
_QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


def _qwen(template: str, specials: tuple[str, ...], roles: dict[str, str] | None = None) -> ChatFormat:
    return ChatFormat(
        specials=specials,
        template=template,
        eos="<|im_end|>",
        pad="<|endoftext|>",
        stops=("<|im_end|>", "<|endoftext|>"),
        roles=roles or {},
    )


QWEN2 = _qwen(_chatml(default_system=_ASSISTANT, image=None), _QWEN_TEXT)
QWEN3 = _qwen(_chatml(default_system=None, image=None), _QWEN_TEXT)
QWEN2_5_VL = _qwen(_chatml(default_system=_ASSISTANT, image=_QWEN_IMAGE), _QWEN_TEXT + _QWEN_VISION)
QWEN3_VL = _qwen(_chatml(default_system=None, image=_QWEN_IMAGE), _QWEN_TEXT + _QWEN_VISION)
INTERNVL = _qwen(
    _chatml(default_system=None, image="<IMG_CONTEXT>\\n"),
    (*_QWEN_TEXT, "<img>", "</img>", "<IMG_CONTEXT>", "<video>"),
    roles={
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    },
)
LLAMA = ChatFormat(
    specials=(
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|finetune_right_pad_id|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
    ),
    template=_LLAMA_TEMPLATE,
    bos="<|begin_of_text|>",
    eos="<|eot_id|>",
    pad="<|finetune_right_pad_id|>",
    stops=("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"),
)
GEMMA3 = ChatFormat(
    specials=(
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        "<start_of_turn>",
        "<end_of_turn>",
        "<start_of_image>",
        "<end_of_image>",
        "<image_soft_token>",
    ),
    template=_GEMMA_TEMPLATE,
    bos="<bos>",
    eos="<eos>",
    pad="<pad>",
    stops=("<eos>", "<end_of_turn>"),
    specials_first=True,
    roles={
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    },
)
LLAVA = ChatFormat(
    specials=("<unk>", "<s>", "</s>", "<pad>", "<image>"),
    template=_VICUNA_TEMPLATE,
    bos="<s>",
    eos="</s>",
    pad="<pad>",
    stops=("</s>",),
    specials_first=True,
)
LLAVA_ONEVISION = _qwen(_chatml(default_system=None, image="<image>\\n"), (*_QWEN_TEXT, "<image>", "<video>"))
SMOLVLM = ChatFormat(
    specials=(
        "<|endoftext|>",
        "<|im_start|>",
        "<end_of_utterance>",
        "<fake_token_around_image>",
        "<global-img>",
        "<image>",
        *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
    ),
    template=_SMOLVLM_TEMPLATE,
    bos="<|im_start|>",
    eos="<end_of_utterance>",
    pad="<|endoftext|>",
    stops=("<end_of_utterance>",),
)
GLM4V = ChatFormat(
    specials=(
        "<|endoftext|>",
        "[gMASK]",
        "<sop>",
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|observation|>",
        "<|begin_of_image|>",
        "<|end_of_image|>",
        "<|begin_of_video|>",
        "<|end_of_video|>",
        "<|image|>",
        "<|video|>",
    ),
    template=_GLM_TEMPLATE,
    eos="<|endoftext|>",
    pad="<|endoftext|>",
    # An answer ends where the next turn begins.
    stops=("<|endoftext|>", "<|user|>", "<|observation|>"),
)
MINICPMV = _qwen(
    _chatml(default_system=None, image="<|image_pad|>\\n"),
    (
        *_QWEN_TEXT,
        "<|image_pad|>",
        "<|video_pad|>",
        *("<image>", "</image>", "<slice>", "</slice>", "<image_id>", "</image_id>"),
    ),
    roles={
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
        "image_start_token": "<image>",
        "image_end_token": "</image>",
        "slice_start_token": "<slice>",
        "slice_end_token": "</slice>",
        "image_id_start_token": "<image_id>",
        "image_id_end_token": "</image_id>",
    },
)
MISTRAL3 = ChatFormat(
    specials=(
        *("<unk>", "<s>", "</s>", "<pad>"),
        *("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        *("[IMG]", "[IMG_BREAK]", "[IMG_END]"),
    ),
    template=_MISTRAL_TEMPLATE,
    bos="<s>",
    eos="</s>",
    pad="<pad>",
    stops=("</s>",),
    specials_first=True,
)
