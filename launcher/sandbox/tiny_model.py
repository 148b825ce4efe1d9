"""Makes a tiny model of DeepSeek-V3's shape with random weights; knows tensor names, no engine.

It exists so that a sandbox serves for real: the files are those of a real model folder (sharded
safetensors with an index, a tokenizer, a manifest), only small. Replies are printable nonsense.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TypeAlias

from launcher.model.architecture import ALIKE
from launcher.model.values import Json

Shape: TypeAlias = tuple[int, ...]

SPECIALS = ("<pad>", "<bos>", "<eos>")
VOCABULARY = 256 + len(SPECIALS)
"""One token a byte and the specials. An id beyond it would be a token without text: an empty reply."""

CONFIG: Mapping[str, Json] = {
    **ALIKE,
    "architectures": ["DeepseekV3ForCausalLM"],
    "vocab_size": VOCABULARY,
    "pad_token_id": 256,
    "bos_token_id": 257,
    "eos_token_id": 258,
    "hidden_size": 256,
    "intermediate_size": 256,
    "moe_intermediate_size": 64,
    "num_hidden_layers": 2,
    "first_k_dense_replace": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    # The real model's MLA widths: attention kernels are written for these alone.
    "q_lora_rank": 64,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "n_group": 2,
    "topk_group": 1,
    "routed_scaling_factor": 1.0,
    "num_nextn_predict_layers": 0,
    "max_position_embeddings": 2048,
}


BYTES: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def make(folder: Path, *, seed: int = 32) -> None:
    """Write the model into `folder`, byte for byte the same for one seed. The manifest is not part of it."""
    _describe(folder, CONFIG, decoder=BYTES)
    shards = _shards()
    random = Random(seed)
    for name, shapes in shards.items():
        (folder / name).write_bytes(_safetensors(shapes, random))
    index: Json = {
        "metadata": {
            "total_size": sum(_bytes(n, s) for shapes in shards.values() for n, s in shapes.items())
        },
        "weight_map": {tensor: name for name, shapes in shards.items() for tensor in shapes},
    }
    _write(folder / "model.safetensors.index.json", index)


def describe(folder: Path, config: Mapping[str, Json]) -> None:
    """Write all of a model but its weights, which an engine can make up (`load-format: dummy`).

    `config`: what is in its config.json beyond the tokens, which are bytes: a vocabulary of `VOCABULARY`.
    Any byte may win then, so replies show each as a visible character.
    """
    _describe(folder, config, decoder={"type": "Fuse"})


def _describe(folder: Path, config: Mapping[str, Json], *, decoder: Json) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokens = {name: CONFIG[name] for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    _write(folder / "config.json", {**config, **tokens, "vocab_size": VOCABULARY})
    _write(folder / "generation_config.json", tokens)
    _write(folder / "tokenizer.json", _tokenizer(decoder))
    _write(folder / "tokenizer_config.json", _tokenizer_config(config["max_position_embeddings"]))


def _write(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _number(name: str) -> int:
    value = CONFIG[name]
    assert isinstance(value, int)
    return value


def _shards() -> dict[str, dict[str, Shape]]:
    """The tensors of each file: a layer a file, with what comes before the first and after the last."""
    hidden, layers = _number("hidden_size"), _number("num_hidden_layers")
    shapes = [dict(_layer(i)) for i in range(layers)]
    shapes[0] |= {"model.embed_tokens.weight": (VOCABULARY, hidden)}
    shapes[-1] |= {"model.norm.weight": (hidden,), "lm_head.weight": (VOCABULARY, hidden)}
    return {f"model-{i:05}-of-{layers:05}.safetensors": s for i, s in enumerate(shapes, start=1)}


def _layer(index: int) -> Iterator[tuple[str, Shape]]:
    prefix = f"model.layers.{index}"
    hidden = _number("hidden_size")
    yield f"{prefix}.input_layernorm.weight", (hidden,)
    yield from _attention(f"{prefix}.self_attn")
    yield f"{prefix}.post_attention_layernorm.weight", (hidden,)
    if index < _number("first_k_dense_replace"):
        yield from _feed_forward(f"{prefix}.mlp", _number("intermediate_size"))
        return
    experts = _number("n_routed_experts")
    yield f"{prefix}.mlp.gate.weight", (experts, hidden)
    yield f"{prefix}.mlp.gate.e_score_correction_bias", (experts,)
    for expert in range(experts):
        yield from _feed_forward(f"{prefix}.mlp.experts.{expert}", _number("moe_intermediate_size"))
    shared = _number("moe_intermediate_size") * _number("n_shared_experts")
    yield from _feed_forward(f"{prefix}.mlp.shared_experts", shared)


def _attention(prefix: str) -> Iterator[tuple[str, Shape]]:
    hidden, heads = _number("hidden_size"), _number("num_attention_heads")
    rope, nope, value = (_number(n) for n in ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"))
    q_rank, kv_rank = _number("q_lora_rank"), _number("kv_lora_rank")
    yield f"{prefix}.q_a_proj.weight", (q_rank, hidden)
    yield f"{prefix}.q_a_layernorm.weight", (q_rank,)
    yield f"{prefix}.q_b_proj.weight", (heads * (nope + rope), q_rank)
    yield f"{prefix}.kv_a_proj_with_mqa.weight", (kv_rank + rope, hidden)
    yield f"{prefix}.kv_a_layernorm.weight", (kv_rank,)
    yield f"{prefix}.kv_b_proj.weight", (heads * (nope + value), kv_rank)
    yield f"{prefix}.o_proj.weight", (hidden, heads * value)


def _feed_forward(prefix: str, width: int) -> Iterator[tuple[str, Shape]]:
    hidden = _number("hidden_size")
    yield f"{prefix}.gate_proj.weight", (width, hidden)
    yield f"{prefix}.up_proj.weight", (width, hidden)
    yield f"{prefix}.down_proj.weight", (hidden, width)


def _safetensors(shapes: Mapping[str, Shape], random: Random) -> bytes:
    """Length of the header, the header, the tensors: the whole safetensors format."""
    header: dict[str, Json] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, shape in shapes.items():
        data = _tensor(name, shape, random)
        header[name] = {
            "dtype": "F32" if _is_float32(name) else "BF16",
            "shape": list(shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def _tensor(name: str, shape: Shape, random: Random) -> bytes:
    if len(shape) == 1:
        values = [0.0 if _is_float32(name) else 1.0] * shape[0]
        return _packed(values, float32=_is_float32(name))
    # Unit variance in gives unit variance out, so that no layer blows up or dies away.
    limit = (3.0 / shape[1]) ** 0.5
    one, width = random.random, 2 * limit  # `uniform` calls the former, and costs as much again
    rows = ([width * one() - limit for _ in range(shape[1])] for _ in range(shape[0]))
    if name == "lm_head.weight":
        rows = (row if _is_printable(i) else [0.0] * shape[1] for i, row in enumerate(rows))
    return _packed([v for row in rows for v in row], float32=False)


def _is_printable(token: int) -> bool:
    """The others keep a logit of 0, which the best of 95 random ones always beats: replies are text."""
    return 32 <= token < 127


def _is_float32(name: str) -> bool:
    return name.endswith("e_score_correction_bias")


def _bytes(name: str, shape: Shape) -> int:
    count = 1
    for length in shape:
        count *= length
    return count * (4 if _is_float32(name) else 2)


def _packed(values: list[float], *, float32: bool) -> bytes:
    raw = struct.pack(f"<{len(values)}f", *values)
    # A bfloat16 is the upper half of a float32.
    if float32:
        return raw
    upper = bytearray(len(raw) // 2)
    upper[0::2], upper[1::2] = raw[2::4], raw[3::4]
    return bytes(upper)


def _alphabet() -> tuple[str, ...]:
    """The visible character that byte-level BPE writes for each byte, by GPT-2's table."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return tuple(chr(b) if b in visible else chr(next(spare)) for b in range(256))


def _tokenizer(decoder: Json) -> Json:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 256 + i,
                "content": text,
                "special": True,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for i, text in enumerate(SPECIALS)
        ],
        "normalizer": None,
        "pre_tokenizer": BYTES,
        "post_processor": None,
        "decoder": decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: i for i, text in enumerate(_alphabet() + SPECIALS)},
            "merges": [],
        },
    }


def _tokenizer_config(longest: Json) -> Json:
    pad, bos, eos = SPECIALS
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": pad,
        "bos_token": bos,
        "eos_token": eos,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        "chat_template": (
            "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}"
        ),
    }
