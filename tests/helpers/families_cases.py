"""Small configs of every family, with odd sizes and every setting that changes a shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture

Config = dict[str, Any]
BOTH = (False, True)


@dataclass(frozen=True)
class Case:
    """One family: its base config, the settings to try one after another, and the classes to count."""

    model_type: str
    base: Mapping[str, Any]
    classes: Sequence[str]
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def configs(self) -> Iterator[tuple[Config, str]]:
        """Each setting changed by itself, and all of them together, over all classes in turn."""
        first = {name: values[0] for name, values in self.settings.items()}
        last = {name: values[-1] for name, values in self.settings.items()}
        tried = [first, last]
        tried += [{**first, name: value} for name, values in self.settings.items() for value in values[1:]]
        tried += [{**last, name: value} for name, values in self.settings.items() for value in values[:-1]]
        for number, changed in enumerate(tried):
            yield self.config(changed), self.classes[number % len(self.classes)]
        for name in self.classes:
            yield self.config(last), name

    def config(self, changed: Mapping[str, Any]) -> Config:
        return {"model_type": self.model_type, **self.base, **changed}


LLAMA = {
    "hidden_size": 54,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 77,
    "vocab_size": 101,
    "num_hidden_layers": 5,
    "max_position_embeddings": 63,
    "pad_token_id": 0,
}
BERT = {name: size for name, size in LLAMA.items() if name != "num_key_value_heads"}
GPT_NEO = {"hidden_size": 54, "vocab_size": 101, "max_position_embeddings": 63}
GPT = {"n_embd": 54, "n_head": 9, "n_layer": 3, "n_positions": 63, "vocab_size": 101, "rotary_dim": 4}
MOE = {"num_experts": 5, "num_local_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 23}
STEPS = {"decoder_sparse_step": (1, 2), "mlp_only_layers": ([], [0, 3], [2])}
LATENT = {
    "kv_lora_rank": 13,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 4,
    "v_head_dim": 7,
    "n_routed_experts": 5,
    "first_k_dense_replace": 2,
    "moe_intermediate_size": 23,
    "num_experts_per_tok": 3,
    "n_group": 1,
    "topk_group": 1,
    "num_key_value_heads": 9,
}
T5 = {"d_model": 54, "d_kv": 7, "num_heads": 9, "d_ff": 77, "num_layers": 2, "num_decoder_layers": 3, "vocab_size": 101}
BART = {
    "d_model": 54,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 77,
    "decoder_ffn_dim": 91,
    "encoder_attention_heads": 9,
    "decoder_attention_heads": 6,
    "vocab_size": 101,
    "max_position_embeddings": 63,
    "pad_token_id": 0,
}
WIDE = {"head_dim": (10,)}
ANY_WIDTH = {"head_dim": (None, 10)}
TIED = {"tie_word_embeddings": BOTH}
BIAS = {"attention_bias": BOTH}
MLP_BIAS = {"mlp_bias": BOTH}

CASES: tuple[Case, ...] = (
    Case(
        "llama",
        LLAMA,
        ["LlamaForCausalLM", "LlamaModel"],
        {**ANY_WIDTH, **BIAS, **MLP_BIAS, **TIED},
    ),
    Case(
        "llama4_text",
        {**LLAMA, **MOE, "head_dim": 10, "intermediate_size_mlp": 95},
        ["Llama4ForCausalLM"],
        {"interleave_moe_layer_step": (1, 2, 3), "moe_layers": (None, [1]), **BIAS},
    ),
    Case(
        "mllama_text_model",
        {**LLAMA, "cross_attention_layers": [1, 3], "hidden_act": "silu"},
        ["MllamaForCausalLM"],
        TIED,
    ),
    Case("mistral", LLAMA, ["MistralForCausalLM", "MistralModel"], {**ANY_WIDTH, **TIED}),
    Case("ministral", {**LLAMA, "head_dim": 6}, ["MinistralForCausalLM"], {**WIDE, **TIED}),
    Case("ministral3", LLAMA, ["Ministral3ForCausalLM"], {**WIDE, **TIED}),
    Case("mixtral", {**LLAMA, **MOE}, ["MixtralForCausalLM"], ANY_WIDTH),
    Case("qwen2", LLAMA, ["Qwen2ForCausalLM", "Qwen2Model"], TIED),
    Case(
        "qwen2_moe",
        {**LLAMA, **MOE, "shared_expert_intermediate_size": 37},
        ["Qwen2MoeForCausalLM"],
        {"qkv_bias": BOTH, **STEPS},
    ),
    Case("qwen2_vl_text", LLAMA, ["Qwen2VLTextModel"]),
    Case("qwen2_5_vl_text", LLAMA, ["Qwen2_5_VLTextModel"]),
    Case("qwen3_vl_text", {**LLAMA, "head_dim": 10}, ["Qwen3VLTextModel"], BIAS),
    Case("qwen3", LLAMA, ["Qwen3ForCausalLM", "Qwen3Model"], {**WIDE, **BIAS, **TIED}),
    Case("qwen3_moe", {**LLAMA, **MOE}, ["Qwen3MoeForCausalLM"], {**WIDE, **BIAS, **STEPS}),
    Case("gemma", LLAMA, ["GemmaForCausalLM"], {**WIDE, **BIAS, **TIED}),
    Case("gemma2", LLAMA, ["Gemma2ForCausalLM", "Gemma2Model"], {**WIDE, **BIAS}),
    Case("gemma3_text", LLAMA, ["Gemma3ForCausalLM", "Gemma3TextModel"], {**WIDE, **BIAS}),
    Case("phi", LLAMA, ["PhiForCausalLM", "PhiModel"], {"qk_layernorm": BOTH, **TIED}),
    Case("phi3", LLAMA, ["Phi3ForCausalLM"], TIED),
    Case("phimoe", {**LLAMA, **MOE}, ["PhimoeForCausalLM"], {"lm_head_bias": BOTH, **BIAS}),
    Case("openai-gpt", GPT, ["OpenAIGPTLMHeadModel", "OpenAIGPTModel"]),
    Case("gpt2", GPT, ["GPT2LMHeadModel", "GPT2Model"], {"n_inner": (None, 77), **TIED}),
    Case(
        "gpt_neo",
        {**GPT_NEO, "num_heads": 9, "num_layers": 4, "attention_types": [[["global", "local"], 2]]},
        ["GPTNeoForCausalLM", "GPTNeoModel"],
        {"intermediate_size": (None, 77)},
    ),
    Case("gpt_neox", BERT, ["GPTNeoXForCausalLM", "GPTNeoXModel"], {**BIAS, **TIED}),
    Case("gptj", GPT, ["GPTJForCausalLM", "GPTJModel"], {"n_inner": (None, 77), **TIED}),
    Case("codegen", GPT, ["CodeGenForCausalLM"], {"n_inner": (None, 77), **TIED}),
    Case("gpt_bigcode", GPT, ["GPTBigCodeForCausalLM"], {"n_inner": (None, 77), "multi_query": BOTH}),
    Case("starcoder2", LLAMA, ["Starcoder2ForCausalLM"], {"use_bias": BOTH, **TIED}),
    Case(
        "falcon",
        BERT,
        ["FalconForCausalLM"],
        {
            "multi_query": BOTH,
            "parallel_attn": BOTH,
            "new_decoder_architecture": BOTH,
            "bias": BOTH,
            "num_kv_heads": (None, 3),
            "num_ln_in_parallel_attn": (None, 1, 2),
            "ffn_hidden_size": (None, 77),
        },
    ),
    Case(
        "bloom",
        {"hidden_size": 54, "n_head": 9, "n_layer": 3, "vocab_size": 101},
        ["BloomForCausalLM", "BloomModel"],
        TIED,
    ),
    Case(
        "mpt",
        {"d_model": 54, "n_heads": 9, "n_layers": 3, "vocab_size": 101},
        ["MptForCausalLM"],
        {"no_bias": BOTH, "expansion_ratio": (4, 3)},
    ),
    Case(
        "opt",
        {**BERT, "ffn_dim": 77},
        ["OPTForCausalLM", "OPTModel"],
        {
            "word_embed_proj_dim": (None, 31),
            "do_layer_norm_before": BOTH,
            "enable_bias": BOTH,
            "layer_norm_elementwise_affine": BOTH,
            "_remove_final_layer_norm": BOTH,
            **TIED,
        },
    ),
    Case(
        "xglm",
        {"d_model": 54, "ffn_dim": 77, "num_layers": 3, "attention_heads": 9, "vocab_size": 101},
        ["XGLMForCausalLM"],
        TIED,
    ),
    Case(
        "stablelm",
        LLAMA,
        ["StableLmForCausalLM"],
        {"use_qkv_bias": BOTH, "qk_layernorm": BOTH, "use_parallel_residual": BOTH},
    ),
    Case("olmo", LLAMA, ["OlmoForCausalLM"], BIAS),
    Case("olmo2", LLAMA, ["Olmo2ForCausalLM"], BIAS),
    Case("olmo3", LLAMA, ["Olmo3ForCausalLM"], BIAS),
    Case("olmoe", {**LLAMA, **MOE}, ["OlmoeForCausalLM"], BIAS),
    Case("cohere", LLAMA, ["CohereForCausalLM"], {"use_qk_norm": BOTH, **BIAS}),
    Case("cohere2", LLAMA, ["Cohere2ForCausalLM"], BIAS),
    Case("granite", LLAMA, ["GraniteForCausalLM"], {**BIAS, **MLP_BIAS, **TIED}),
    Case("granitemoe", {**LLAMA, **MOE}, ["GraniteMoeForCausalLM"], BIAS),
    Case("nemotron", LLAMA, ["NemotronForCausalLM"], {**WIDE, **BIAS, **MLP_BIAS}),
    Case("glm", LLAMA, ["GlmForCausalLM"], {**WIDE, **BIAS}),
    Case("glm4", LLAMA, ["Glm4ForCausalLM"], {**WIDE, **BIAS}),
    Case("internlm3", LLAMA, ["LlamaForCausalLM"], WIDE),
    Case("internlm3", {**LLAMA, "qkv_bias": True, "bias": True}, ["LlamaForCausalLM"], WIDE),
    Case("exaone4", LLAMA, ["Exaone4ForCausalLM"], WIDE),
    Case("smollm3", LLAMA, ["SmolLM3ForCausalLM"], {**BIAS, **MLP_BIAS, **TIED}),
    Case("persimmon", BERT, ["PersimmonForCausalLM"], {"qk_layernorm": BOTH}),
    Case(
        "deepseek_v2",
        {**LLAMA, **LATENT},
        ["DeepseekV2ForCausalLM"],
        {"q_lora_rank": (None, 14), "n_shared_experts": (1, 2), **BIAS, **MLP_BIAS},
    ),
    Case(
        "deepseek_v3",
        {**LLAMA, **LATENT},
        ["DeepseekV3ForCausalLM"],
        {"q_lora_rank": (None, 14), "n_shared_experts": (1, 2), **BIAS},
    ),
    Case("gpt_oss", {**LLAMA, **MOE}, ["GptOssForCausalLM"], {**WIDE, **BIAS}),
    Case(
        "bert",
        BERT,
        [
            "BertForMaskedLM",
            "BertModel",
            "BertLMHeadModel",
        ],
        {"type_vocab_size": (2, 3), **TIED},
    ),
    Case(
        "roberta",
        BERT,
        [
            "RobertaForMaskedLM",
            "RobertaModel",
        ],
        {"type_vocab_size": (1, 2), **TIED},
    ),
    Case("xlm-roberta", BERT, ["XLMRobertaModel", "XLMRobertaForMaskedLM"]),
    Case("camembert", BERT, ["CamembertModel", "CamembertForMaskedLM"]),
    Case(
        "distilbert",
        {"dim": 54, "n_heads": 9, "n_layers": 3, "hidden_dim": 77, "vocab_size": 101, "max_position_embeddings": 63},
        ["DistilBertForMaskedLM", "DistilBertModel"],
        TIED,
    ),
    Case(
        "albert",
        BERT,
        ["AlbertForMaskedLM", "AlbertModel"],
        {"embedding_size": (21, 54), "num_hidden_groups": (1, 2), **TIED},
    ),
    Case(
        "electra",
        BERT,
        ["ElectraModel", "ElectraForMaskedLM"],
        {"embedding_size": (21, 54), **TIED},
    ),
    Case(
        "modernbert",
        BERT,
        ["ModernBertForMaskedLM", "ModernBertModel"],
        {"norm_bias": BOTH, "decoder_bias": BOTH, "classifier_bias": BOTH, **BIAS, **MLP_BIAS, **TIED},
    ),
    Case(
        "deberta",
        BERT,
        ["DebertaForMaskedLM", "DebertaModel"],
        {
            "relative_attention": BOTH,
            "pos_att_type": (None, ["c2p"], "p2c|c2p"),
            "position_biased_input": BOTH,
            "type_vocab_size": (0, 2),
            "max_relative_positions": (-1, 21),
            **TIED,
        },
    ),
    Case(
        "deberta-v2",
        BERT,
        ["DebertaV2ForMaskedLM", "DebertaV2Model"],
        {
            "relative_attention": BOTH,
            "pos_att_type": (["c2p"], "p2c|c2p"),
            "position_biased_input": BOTH,
            "share_att_key": BOTH,
            "norm_rel_ebd": ("none", "layer_norm"),
            "position_buckets": (-1, 17),
            "conv_kernel_size": (0, 3),
            "legacy": BOTH,
        },
    ),
    Case(
        "vit",
        {**BERT, "image_size": 35, "patch_size": 7},
        ["ViTForImageClassification", "ViTModel"],
        {"qkv_bias": BOTH, "num_channels": (3, 1), "id2label": ({"0": "a", "1": "b"}, {"0": "a", "1": "b", "2": "c"})},
    ),
    Case(
        "clip_text_model",
        {**BERT, "projection_dim": 15},
        ["CLIPTextModel", "CLIPTextModelWithProjection"],
    ),
    Case(
        "t5",
        T5,
        ["T5ForConditionalGeneration", "T5Model", "T5EncoderModel"],
        {"feed_forward_proj": ("relu", "gated-gelu"), **TIED},
    ),
    Case("mt5", T5, ["MT5ForConditionalGeneration"], {"feed_forward_proj": ("relu", "gated-gelu")}),
    Case("umt5", T5, ["UMT5ForConditionalGeneration"]),
    Case("bart", BART, ["BartForConditionalGeneration", "BartModel"], TIED),
    Case("mbart", BART, ["MBartForConditionalGeneration"], TIED),
    Case(
        "whisper",
        {**BART, "num_mel_bins": 8, "max_source_positions": 31, "max_target_positions": 21},
        ["WhisperForConditionalGeneration", "WhisperModel"],
        TIED,
    ),
)


@cache
def every_architecture() -> tuple[Architecture, ...]:
    """A model of every family and setting, and one without every optional field of its config."""
    return tuple(_architectures())


def _architectures() -> Iterator[Architecture]:
    for case in CASES:
        configs = [config for config, _class in case.configs()]
        configs += [{key: value for key, value in configs[0].items() if key != field} for field in configs[0]]
        for config in configs:
            with suppress(ConfigError):
                yield build_architecture({**config, "architectures": [case.classes[0]]}, "The model")
