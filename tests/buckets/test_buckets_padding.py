"""Padding changes no result, and what cannot be padded is named."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from shapeguard.buckets import BucketCollator, pad_to_bucket
from shapeguard.buckets.sampler import MarkedRow

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "fixtures" / "scripts"))
import tiny

BUCKETS = [16, 32, 64]
SMALL = {"vocab_size": 400, "pad_token_id": 0}
BERT = {**SMALL, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
T5 = {**SMALL, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
BART = {
    **SMALL, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 128,
}  # fmt: skip
GPT2 = {"vocab_size": 400, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
MODELS: Mapping[str, Any] = {
    "llama": lambda: tiny.llama(layers=2),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**BERT)),
    "roberta": lambda: transformers.RobertaForMaskedLM(transformers.RobertaConfig(**BERT)),
    "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)),
    "bart": lambda: transformers.BartForConditionalGeneration(transformers.BartConfig(**BART)),
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny.tokenizer()


def rows_for(model: Any, tokenizer: Any) -> list[dict[str, Any]]:
    rows = [dict(tokenizer(line)) for line in tiny.lines()[:9]]
    if not model.config.is_encoder_decoder:
        return rows
    return [{**row, "labels": rows[number - 3]["input_ids"]} for number, row in enumerate(rows)]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_padded_rows_have_the_logits_of_unpadded_ones(name: str, attention: str, tokenizer: Any) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    model.set_attn_implementation(attention)
    rows = rows_for(model, tokenizer)
    batch = BucketCollator(tokenizer, BUCKETS, batch_size=12)(rows)
    assert {tuple(value.shape) for value in batch.values()} == {(12, 32)}
    padded = model(**batch).logits
    assert not padded.isnan().any()
    for number, row in enumerate(rows):
        alone = model(**{key: torch.tensor([value]) for key, value in row.items()}).logits[0]
        assert torch.allclose(padded[number, : len(alone)], alone, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_loss_of_a_filled_batch_is_that_of_its_real_rows(tokenizer: Any) -> None:
    model = tiny.llama().eval()
    rows = rows_for(model, tokenizer)[:5]
    filled = BucketCollator(tokenizer, BUCKETS, batch_size=8, causal_labels=True)(rows)
    full = BucketCollator(tokenizer, BUCKETS, batch_size=5, causal_labels=True)(rows)
    assert len(filled["input_ids"]) == 8
    assert model(**filled).loss.item() == pytest.approx(model(**full).loss.item(), abs=1e-6)


@torch.no_grad()
def test_left_padded_prompts_go_on_as_alone(tokenizer: Any) -> None:
    model = tiny.llama(layers=2).eval()
    prompts = tiny.lines()[:4]
    inputs = pad_to_bucket(tokenizer(prompts), BUCKETS, tokenizer=tokenizer)
    together = model.generate(**inputs, max_new_tokens=6, do_sample=False)[:, -6:]
    for number, prompt in enumerate(prompts):
        alone = model.generate(**tokenizer([prompt], return_tensors="pt"), max_new_tokens=6, do_sample=False)
        assert alone[0, -6:].tolist() == together[number].tolist()


def test_prompts_are_padded_alike_whatever_the_tokenizer_did(tokenizer: Any) -> None:
    prompts = tiny.lines()[:3]
    wanted = pad_to_bucket(tokenizer(prompts), BUCKETS, tokenizer=tokenizer)
    assert isinstance(wanted, transformers.BatchEncoding)
    right = tiny.tokenizer("right")
    for given in (
        tokenizer(prompts, padding=True, return_tensors="pt"),
        tokenizer(prompts, padding="max_length", max_length=50, return_tensors="pt"),
        right(prompts, padding="max_length", max_length=50, return_tensors="pt"),
    ):
        padded = pad_to_bucket(given, BUCKETS, tokenizer=tokenizer)
        assert all(torch.equal(padded[name], wanted[name]) for name in wanted)
    ids_alone = pad_to_bucket(tokenizer(prompts)["input_ids"], BUCKETS, pad_token_id=0)
    assert torch.equal(ids_alone["attention_mask"], wanted["attention_mask"])


def test_one_prompt_without_a_batch_becomes_a_batch_of_one() -> None:
    assert pad_to_bucket([5, 6], [4], pad_token_id=9)["input_ids"].tolist() == [[9, 9, 5, 6]]
    assert pad_to_bucket(torch.tensor([5, 6]), [4], pad_token_id=9, side="right")["input_ids"].tolist() == [
        [5, 6, 9, 9]
    ]


def test_a_long_prompt_keeps_its_end_when_it_may_be_cut() -> None:
    padded = pad_to_bucket([[1, 2, 3, 4, 5], [6]], [2, 3], pad_token_id=0, truncate=True)
    assert padded["input_ids"].tolist() == [[3, 4, 5], [0, 0, 6]]
    assert padded["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]


def test_every_input_that_runs_along_the_tokens_is_padded_with_its_own_value() -> None:
    row = {
        "input_ids": [5, 6, 7],
        "token_type_ids": [1, 1, 1],
        "position_ids": [0, 1, 2],
        "special_tokens_mask": [0, 0, 1],
        "labels": torch.tensor([5, 6, 7]),
        "bbox": [[1, 1, 2, 2]] * 3,
        "inputs_embeds": torch.ones(3, 2),
        "weights": [0.5, 0.5, 0.5],
        "pixel_values": torch.ones(3, 4, 4),
        "text": "left out",
        "missing": None,
    }
    collate = BucketCollator(buckets=[4], batch_size=2, pad_token_id=9, pad={"weights": 0})
    batch = collate([row])
    assert "text" not in batch
    assert batch["input_ids"].tolist() == [[5, 6, 7, 9], [9, 9, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]
    assert batch["special_tokens_mask"].tolist()[0] == [0, 0, 1, 1]
    assert batch["labels"].tolist() == [[5, 6, 7, -100], [-100] * 4]
    assert batch["weights"].dtype == torch.float32
    assert batch["bbox"].shape == (2, 4, 4)
    assert batch["inputs_embeds"].shape == (2, 4, 2)
    assert batch["pixel_values"].shape == (2, 3, 4, 4)


def test_square_masks_are_padded_on_both_sides() -> None:
    row = {"input_ids": [1, 2], "attention_mask": torch.ones(2, 2, dtype=torch.long).tril()}
    batch = BucketCollator(buckets=[4], pad_token_id=0)([row])
    assert batch["attention_mask"].tolist() == [[[1, 0, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]]


def test_labels_of_a_class_stay_one_number_a_row() -> None:
    collate = BucketCollator(buckets=[4], batch_size=3, pad_token_id=0)
    assert collate([{"input_ids": [1], "label": 2}, {"input_ids": [1], "label": 0}])["labels"].tolist() == [2, 0, -100]
    scores = collate([{"input_ids": [1], "labels": [0.0, 1.0]}] * 3)["labels"]
    assert scores.shape == (3, 2)


def test_labels_of_any_whole_kind_can_be_masked() -> None:
    collate = BucketCollator(buckets=[4], batch_size=2, pad_token_id=0)
    for label in (True, torch.tensor(1, dtype=torch.uint8), np.int32(1)):
        assert collate([{"input_ids": [1], "label": label}])["labels"].tolist() == [1, -100]


def test_a_filled_answer_lies_behind_the_last_token() -> None:
    row = {"input_ids": [1, 2], "start_positions": 0, "end_positions": 1}
    batch = BucketCollator(buckets=[4], batch_size=2, pad_token_id=0)([row])
    assert (batch["start_positions"].tolist(), batch["end_positions"].tolist()) == ([0, 4], [1, 4])


def test_embeddings_get_a_mask() -> None:
    batch = BucketCollator(buckets=[4], pad_token_id=0)([{"inputs_embeds": torch.ones(2, 3)}])
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0]]


def test_buckets_can_be_numbers_of_numpy() -> None:
    assert BucketCollator(buckets=np.array([4, 8]), pad_token_id=0)([[1]])["input_ids"].shape == (1, 4)


def test_targets_can_have_a_length_of_their_own() -> None:
    row = {"input_ids": [1] * 9, "labels": [1, 2]}
    assert BucketCollator(buckets=[4, 16], pad_token_id=0)([row])["labels"].shape == (1, 16)
    own = BucketCollator(buckets=[4, 16], pad_token_id=0, target_length=3)([row])
    assert own["labels"].tolist() == [[1, 2, -100]]
    assert own["input_ids"].shape == (1, 16)


def test_a_tokenizer_of_the_library_tokenizers_and_rows_of_ids_will_do() -> None:
    plain = tiny.tokenizer().backend_tokenizer
    plain.no_padding()
    encoding = plain.encode(tiny.lines()[0])
    with pytest.raises(ValueError, match=r"Tokenizer has no padding token; set tokenizer\.pad_token"):
        BucketCollator(plain, BUCKETS)
    plain.enable_padding(pad_id=0)
    collate = BucketCollator(plain, BUCKETS)
    plain.no_padding()
    assert torch.equal(collate([encoding])["input_ids"], collate([encoding.ids])["input_ids"])


def test_a_batch_is_padded_to_the_bucket_of_its_marks() -> None:
    collate = BucketCollator(buckets=[4, 8], batch_size=1, pad_token_id=0)
    assert collate([MarkedRow(row={"input_ids": [1]}, bucket=8, is_filler=False)])["input_ids"].shape == (1, 8)
    masked = collate([MarkedRow(row={"input_ids": [1], "labels": [1]}, bucket=8, is_filler=True)])
    assert masked["labels"].tolist() == [[-100] * 8]
    assert masked["input_ids"].tolist() == [[0] * 8]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([[1] * 9], {}, "a row of 9 tokens fits no bucket, the largest is 8; truncate=True cuts such rows"),
        (
            [{"input_ids": [1, 2], "mine": [1, 2]}],
            {},
            "does 'mine', of shape (2,), run along the tokens? Then give pad={'mine': 0}, otherwise fixed=('mine',)",
        ),
        (
            [{"input_ids": [1], "mine": [1, 2]}, {"input_ids": [1], "mine": [1]}],
            {"fixed": ("mine",)},
            "'mine' has rows of different shapes: (1,), (2,)",
        ),
        ([{"input_ids": [1], "labels": [1]}, {"input_ids": [1]}], {}, "1 of 2 rows have no 'labels'"),
        ([[1], [2], [3]], {"batch_size": 2}, "a batch of 3 rows is larger than the batch_size 2"),
        ([{"text": "a"}], {}, "a row holds no numbers, only text: tokenize it"),
        (
            [{"input_ids": [[1, 2]]}],
            {},
            "input_ids of a row have the shape (1, 2): tokenize rows one by one, without return_tensors",
        ),
        (
            [{"input_ids": [1], "bbox": [[1, 2], [1]]}],
            {},
            "bbox of a row cannot become a tensor: expected sequence of length 2 at dim 1 (got 1)",
        ),
        (
            [{"input_ids": [1], "labels": [1] * 9}],
            {"target_length": 4},
            "labels: 9 tokens are more than 4; truncate=True cuts them",
        ),
        ([], {}, "a batch without rows cannot be padded; its data set is empty"),
        (
            [{"input_ids": [1], "labels": 0.5}],
            {"batch_size": 2},
            "labels are torch.float32, which no loss leaves out, so a short batch cannot be filled; "
            "give BucketSampler drop_last=True",
        ),
        (
            [{"input_ids": torch.ones(2, device="meta")}],
            {},
            "input_ids lies on meta: pad on the CPU, each length there would be one more compile",
        ),
    ],
)
def test_rows_that_cannot_be_padded_are_named(rows: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        BucketCollator(buckets=[4, 8], pad_token_id=0, **options)(rows)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([[1] * 9], "a prompt of 9 tokens fits no bucket, the largest is 8; truncate=True keeps its end"),
        ({"attention_mask": [[1]]}, "there are no input_ids, only attention_mask"),
        ([], "there are no prompts"),
        (torch.tensor(3), "there are no prompts"),
        (["a b"], "prompts are token ids, not texts: tokenize them first"),
        ([[1], []], "prompt 1 has no tokens, and attention over nothing is not a number"),
        ({"input_ids": [[1, 2], [1]], "attention_mask": [[1, 1]]}, "attention_mask has 1 rows, input_ids 2"),
        ({"input_ids": [[1]], "attention_mask": [[1, 1]]}, "an input of 2 tokens stands beside input_ids of 1"),
    ],
)
def test_prompts_that_cannot_be_padded_are_named(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        pad_to_bucket(inputs, [4, 8], pad_token_id=0)
    assert str(caught.value) == message
