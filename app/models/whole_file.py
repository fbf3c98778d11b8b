"""What a config.json holds besides the sizes that are read: other kinds of files, fields that would change the model.

A field that nobody reads must not change a shape or the mask without a word: it is refused by name, or noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.models.architecture import ModelNote, model_note
from app.models.config_fields import Config, ConfigError, quoted
from app.models.table import FamilyTable, is_by_hand
from app.translation import N_
from app.translation import gettext as _

_OTHER_FILES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"peft_type"}),
        N_("This is the configuration of an adapter: take the config.json of its base model, {base}."),
    ),
    (frozenset({"weight_map"}), N_("This is the index of a model’s weights: take the config.json beside it.")),
    (
        frozenset({"_diffusers_version"}),
        N_("This is the configuration of a diffusion pipeline, not of a language model: choose another file."),
    ),
    (
        frozenset({"tokenizer_class"}),
        N_("This is the configuration of a tokenizer: take the config.json beside it."),
    ),
    (
        frozenset({"added_tokens", "pre_tokenizer"}),
        N_("This is a tokenizer, not a model: take the config.json beside it."),
    ),
    (
        frozenset({"_from_model_config"}),
        N_("This is a generation_config.json, which says how to write texts: take the config.json beside it."),
    ),
    (
        frozenset({"do_sample", "transformers_version"}),
        N_("This is a generation_config.json, which says how to write texts: take the config.json beside it."),
    ),
    (
        frozenset({"image_processor_type"}),
        N_("This is the configuration of an image processor: take the config.json beside it."),
    ),
    (
        frozenset({"dim", "n_layers", "n_heads"}),
        N_(
            "This is a params.json in the form of the model’s makers: take the config.json of the same model from the "
            "Hugging Face Hub."
        ),
    ),
)

# Fields that change shapes or the mask where a class reads them: the values that change nothing.
_SAFE_VALUES: Mapping[str, tuple[object, ...]] = {
    "add_cross_attention": (False,),
    "alibi_starting_size": (),
    "attention_head_type": ("multihead",),
    "block_configs": (),
    "feed_forward_type": ("original", "mlp"),
    "inner_group_num": (1,),
    "is_causal": (True,),
    "mlp_type": ("mlp", "default"),
    "per_layer_config": ({},),
    "position_embedding_type": ("absolute", "rope", "nope"),
    "rotary_emb_fraction": (0, 0.0),
    "talking_head": (False,),
    "use_mla": (True,),
}
_LISTED = re.compile(r"per_layer|_sizes$|_list$")
# Fields that any config may have and that change neither shapes nor the mask.
_OF_ANY_MODEL = """
    model_type architectures auto_map transformers_version torch_dtype dtype use_cache cache_implementation
    _name_or_path name_or_path _commit_hash _attn_implementation _attn_implementation_autoset attn_implementation
    attn_impl use_flash_attention_2 _flash_attn_2_enabled return_dict return_dict_in_generate output_attentions
    output_hidden_states output_scores output_past output_router_logits chunk_size_feed_forward is_encoder_decoder
    is_decoder cross_attention_hidden_size tie_encoder_decoder tie_word_embeddings pruned_heads torchscript
    use_bfloat16 bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id mask_token_id cls_token_id
    decoder_start_token_id forced_bos_token_id forced_eos_token_id suppress_tokens begin_suppress_tokens
    bad_words_ids prefix finetuning_task id2label label2id num_labels problem_type task_specific_params
    tokenizer_class max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty
    temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
    encoder_no_repeat_ngram_size num_return_sequences exponential_decay_length_penalty remove_invalid_values
    tf_legacy_loss initializer_range initializer_factor init_std attention_dropout hidden_dropout
    hidden_dropout_prob attention_probs_dropout_prob classifier_dropout dropout activation_dropout attn_pdrop
    embd_pdrop resid_pdrop layerdrop rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps hidden_act
    activation_function rope_theta rope_scaling rope_parameters partial_rotary_factor rope_interleave
    rope_local_base_freq quantization_config compression_config pretraining_tp router_aux_loss_coef
    router_jitter_noise language license unsloth_version unsloth_fixed max_position_embeddings
    original_max_position_embeddings gradient_checkpointing num_nextn_predict_layers num_mtp_layers bos_token
    eos_token ep_size moe_layer_freq_seed norm_topk_prob seq_aux scoring_func topk_method topk_group n_group
    routed_scaling_factor aux_loss_alpha position_embedding_type use_mla is_causal
"""


def check_kind_of_file(config: Config) -> None:
    """Raise ConfigError for a JSON file that isn't a model's config.json, naming what it is."""
    if isinstance(config.get("model_type"), str) and "peft_type" not in config:
        return
    for fields, sentence in _OTHER_FILES:
        if fields <= config.keys():
            base = config.get("base_model_name_or_path")
            raise ConfigError(_(sentence).format(base=base[:80] if isinstance(base, str) else _("named in it")))


def check_unread_fields(config: Config, known: frozenset[str], layers: int = 0) -> None:
    """Raise ConfigError for a field that isn't `known` and may change shapes or the mask."""
    for name, value in config.items():
        if name in known or value is None:
            continue
        changes = name in _SAFE_VALUES and not any(
            type(value) is type(safe) and value == safe for safe in _SAFE_VALUES[name]
        )
        if changes or (isinstance(value, list) and value and _LISTED.search(name)):
            problem = _('"{field}" is {value}, which changes the model in a way that is not supported.')
            raise ConfigError(problem.format(field=name, value=quoted(value)))
    attention = config.get("attn_config")
    if isinstance(attention, dict):
        kv_heads, kind = attention.get("kv_n_heads"), attention.get("attn_type")
        if kv_heads not in (None, config.get("n_heads")) or kind not in (None, "multihead_attention"):
            problem = _('"attn_config" has "{field}", which changes the model in a way that is not supported.')
            raise ConfigError(problem.format(field="kv_n_heads" if kv_heads is not None else "attn_type"))


# The names that model makers give to one size, by its symbol.
_NAMES_OF_SIZES = {
    "d": "hidden_size n_embd n_embed d_model dim emb_dim embed_dim",
    "H": "num_attention_heads n_head num_heads n_heads encoder_attention_heads",
    "G": "num_key_value_heads num_kv_heads n_kv_heads multi_query_group_num",
    "d_h": "head_dim d_kv kv_channels attention_head_dim",
    "d_v": "v_head_dim",
    "d_ff": "intermediate_size n_inner ffn_dim d_ff encoder_ffn_dim ffn_hidden_size",
    "V": "vocab_size",
    "L": "num_hidden_layers n_layer num_layers encoder_layers n_layers num_encoder_layers",
    "E": "num_experts num_local_experts n_routed_experts moe_num_experts num_routed_experts",
    "k": "num_experts_per_tok moe_k moe_topk num_experts_per_token experts_per_token moe_top_k",
    "d_exp": "moe_intermediate_size",
    "n_sh": "n_shared_experts num_shared_experts num_shared_expert moe_num_shared_experts",
}


def check_names_of_sizes(config: Config, table: FamilyTable, model_type: str) -> None:
    """Raise ConfigError for a size under a name that only other types have."""
    for symbol, names in _NAMES_OF_SIZES.items():
        line = table.sizes.get(symbol)
        if line is None or any(field in config for field in line.fields):
            continue
        other = next((name for name in names.split() if name in config and name not in table.fields), None)
        if other and line.fields:
            problem = _('This config.json has "{field}", which models of type "{type}" call "{name}": rename it.')
            raise ConfigError(problem.format(field=other, type=model_type, name=line.fields[0]))


def notes_on_fields(config: Config, model_type: str, table: FamilyTable | None) -> Iterator[ModelNote]:
    """Yield notes on a file's own code, and on fields that neither the table nor any model of transformers has."""
    if config.get("auto_map"):
        note = N_(
            'This file brings its own code ("auto_map"), which is not run: it is read as “{type}” in transformers.'
        )
        if table is not None and is_by_hand(model_type):
            note = N_(
                'This file brings its own code ("auto_map"), which is not run: it is read by a table for “{type}”, '
                "written by hand from published code."
            )
        yield model_note(note, type=model_type)
    if table is None:
        return
    untested = sorted(name for name in table.untested if config.get(name) is not None)
    if untested:
        note = N_("Not known to change nothing, and left out of account: {fields}.")
        yield model_note(note, fields=", ".join(f'"{name}"' for name in untested))
    known = table.fields.union(_OF_ANY_MODEL.split())
    unknown = sorted(name for name, value in config.items() if name not in known and not _is_about_tokens(name, value))
    if unknown:
        note = N_("Not read, since “{type}” in transformers has no such field: {fields}.")
        if is_by_hand(model_type):
            note = N_("Not read, since the table for “{type}” has no such field: {fields}.")
        yield model_note(note, type=model_type, fields=", ".join(f'"{name[:40]}"' for name in unknown[:12]))


def _is_about_tokens(name: str, value: object) -> bool:
    return (
        name.startswith("_") or name.endswith(("_token_id", "_token_index", "_token_ids", "_dropout")) or value is None
    )
