"""What the flow library can tell about names, values and calls, and what it leaves open."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from shapeguard.lint.flow.facts import Facts
from shapeguard.lint.flow.moves import Trace
from shapeguard.lint.rule import load_rules
from shapeguard.lint.visit import Context, SourceError, check_source


def facts(source: str) -> Facts:
    return Facts(cst.parse_module(textwrap.dedent(source)))


def argument(flow: Facts, call: str = "probe") -> list[object]:
    """The constants that the first argument of `probe(...)` may be."""
    (found,) = [each for each in flow.calls if each.method == call]
    return sorted((c for node in found.positional(0) for c in flow.constants(node)), key=repr)


CONSTANTS = {
    "a name": ("x = 1\nprobe(x)", [1]),
    "the last of two": ("x = 1\nx = 2\nprobe(x)", [2]),
    "either branch": ("x = 1\nif y:\n    x = 2\nprobe(x)", [1, 2]),
    "not the other branch": ("if y:\n    x = 1\nelse:\n    x = 2\n    probe(x)", [2]),
    "not a branch that leaves": ("def f():\n    x = 1\n    if y:\n        x = 2\n        return\n    probe(x)", [1]),
    "around a loop": ("x = 1\nfor i in y:\n    probe(x)\n    x = 2", [1, 2]),
    "a closure": ("x = 1\ndef f():\n    probe(x)\nx = 2", [1, 2]),
    "a ternary": ("probe(1 if y else 2)", [1, 2]),
    "unpacked": ("x, (y, z) = 1, (2, 3)\nprobe(z)", [3]),
    "a walrus": ("if (x := 3):\n    probe(x)", [3]),
    "a default": ("def f(x=1):\n    probe(x)", [1]),
    "a default and an argument": ("def f(x=1):\n    probe(x)\nf(2)\nf(x=3)", [1, 2, 3]),
    "an argument of a method": ("class A:\n    def f(self, x):\n        probe(x)\na = A()\na.f(4)", [4]),
    "an argument of a constructor": (
        "class A:\n    def __init__(self, x):\n        self.x = x\n    def f(self):\n        probe(self.x)\nA(5)",
        [5],
    ),
    "a class attribute": ("class A:\n    X = 6\n    def f(self):\n        probe(self.X)", [6]),
    "a function's result": ("def f():\n    return 7\nprobe(f())", [7]),
    "a dict's entry": ("d = {'a': 8}\nprobe(d['a'])", [8]),
    "a dict's edited entry": ("d = dict(a=8)\nd['a'] = 9\nprobe(d.get('a'))", [9]),
    "a dict's default": ("probe(d.get('a', 10))", [10]),
    "the environment's default": ("import os\nprobe(os.getenv('A', '11'))", ["11"]),
    "a dataclass": ("class A:\n    x: int = 12\ndef f(a: A):\n    probe(a.x)", [12]),
    "a dataclass made with another value": ("class A:\n    x: int = 12\nprobe(A(x=13).x)", [13]),
    "an option": (
        "p = argparse.ArgumentParser()\np.add_argument('--an-x', default=14)\nprobe(p.parse_args().an_x)",
        [14],
    ),
    "a star": ("x, *y = z\nprobe(y)", []),
    "an unknown name": ("probe(x)", []),
    "itself": ("x = x\nprobe(x)", []),
    "a circle": ("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\nprobe(f(1))", []),
    "not on CUDA": ("import torch\nx = 1\nif torch.cuda.is_available():\n    x = 2\nprobe(x)", [1]),
    "global": ("def f():\n    global x\n    x = 1\ndef g():\n    probe(x)", [1]),
}


@pytest.mark.parametrize(("source", "expected"), CONSTANTS.values(), ids=CONSTANTS)
def test_a_value_is_followed_to_its_constants(source: str, expected: list[object]) -> None:
    assert argument(facts(source)) == expected


NAMES = {
    "import": ("import a.b\na.b.probe()", {"a.b.probe"}),
    "import as": ("import a.b as c\nc.probe()", {"a.b.probe"}),
    "from import as": ("from a.b import probe as p\np()", {"a.b.probe"}),
    "alias": ("from a import probe\np = probe\np()", {"a.probe"}),
    "attribute of an alias": ("import a\nb = a.b\nb.probe()", {"a.b.probe"}),
    "try": (
        "try:\n    from a import probe\nexcept ImportError:\n    from b import probe\nprobe()",
        {"a.probe", "b.probe"},
    ),
    "star": ("from a import *\nProbe()", {"a.Probe"}),
    "relative": ("from . import probe\nprobe()", {".probe"}),
    "base of a class": ("from a import Base\nclass B(Base):\n    pass\nB()", {"a.Base"}),
    "shadowed": ("from a import probe\ndef f(probe):\n    probe()", set()),
    "partial": ("import functools, a\np = functools.partial(a.probe, 1)\np()", {"a.probe"}),
}


@pytest.mark.parametrize(("source", "expected"), NAMES.values(), ids=NAMES)
def test_a_callee_is_named_through_imports(source: str, expected: set[str]) -> None:
    assert facts(source).calls[-1].names == frozenset(expected)


ARGUMENTS = {
    "unpacked": ("probe(**{'x': 1})", 1, True),
    "bound by partial": ("from functools import partial\np = partial(probe, x=1)\np()", 1, True),
    "given again after partial": ("from functools import partial\np = partial(probe, x=1)\np(x=2)", 2, True),
    "a thread's": ("from threading import Thread\nThread(target=probe, kwargs={'x': 1})", 1, True),
    "an executor's": ("pool.submit(probe, x=1)", 1, True),
    "run in an executor": (
        "from functools import partial\nloop.run_in_executor(None, partial(probe, x=1))",
        1,
        True,
    ),
    "merged": ("probe(**({'x': 0} | {'x': 1}))", 1, True),
    "through **kwargs": ("def f(**kwargs):\n    probe(**kwargs)\nf(x=1)", 1, True),
    "not complete": ("probe(x=1, **z)", 1, False),
    "perhaps removed": ("d = {'x': 1}\nd.pop(key)\nprobe(**d)", 1, True),
}


@pytest.mark.parametrize(("source", "value", "complete"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_arguments_of_a_call_are_gathered(source: str, value: object, complete: bool) -> None:
    call = [each for each in facts(source).calls if each.method == "probe" and not each.open][-1]
    assert call.constant("x") == value
    assert call.is_complete is complete


KINDS = {
    "decoder": "from transformers import AutoModelForCausalLM as A\nx = A.from_pretrained('a').eval().to('neuron')",
    "encoder-decoder": "import transformers as t\nx = t.T5ForConditionalGeneration.from_pretrained('a')",
    "vision": "from transformers import LlavaForConditionalGeneration as L\nx = L.from_pretrained('a')",
    "tokenizer": (
        "from transformers import AutoTokenizer as A\ndef f():\n    return 1, A.from_pretrained('a')\n_, x = f()"
    ),
    "processor": "from transformers import WhisperProcessor as W\nx = W.from_pretrained('a')",
    "foreign": "from vllm import LLM\nx = LLM('a')",
    "local": "class A:\n    pass\nx = A()",
    "local-model": "from torch import nn\nclass A(nn.Module):\n    pass\nx = A()",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_sort_of_an_object_is_known_by_what_makes_it(kind: str) -> None:
    flow = facts(KINDS[kind] + "\nprobe(x)")
    (node,) = flow.calls[-1].positional(0)
    assert flow.kinds(node) == {kind}


GUARDS = {
    "if torch.cuda.is_available():\n    probe()": True,
    "if not torch.cuda.is_available():\n    probe()": False,
    "if not torch.cuda.is_available():\n    raise SystemExit\nprobe()": True,
    "if device == 'cpu':\n    probe()": True,
    "if device.type == 'cuda':\n    probe()": True,
    "if str(device).startswith('cuda'):\n    probe()": True,
    "if device == 'neuron':\n    pass\nelse:\n    probe()": True,
    "if device != 'neuron':\n    probe()": True,
    "if torch.cuda.device_count() > 1:\n    probe()": True,
    "if args.no_cuda:\n    pass\nelse:\n    probe()": True,
    "if use_cuda and big:\n    probe()": True,
    "if use_cuda or big:\n    probe()": False,
    "assert torch.cuda.is_available()\nprobe()": True,
    "use_gpu = torch.cuda.is_available()\nif use_gpu:\n    probe()": True,
    "if torch.neuron.is_available():\n    probe()": False,
    "if name == 'cpu':\n    probe()": False,
    "probe() if torch.cuda.is_available() else None": True,
}


@pytest.mark.parametrize("source", GUARDS)
def test_code_for_other_devices_only_is_seen(source: str) -> None:
    flow = facts("import torch\n" + source)
    (call,) = [each for each in flow.calls if each.method == "probe"]
    assert flow.never_on_neuron(call.node) is GUARDS[source]


def test_a_trace_ends_at_what_made_the_input() -> None:
    flow = facts(
        """
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained("a")
        ids = tokenizer("Hi", return_tensors="pt")["input_ids"].to("neuron").long()
        probe(ids)
        """
    )
    trace = Trace(flow)
    assert trace.follow(flow.calls[-1].positional(0)[0])
    assert [move.key for move in trace.moves] == ["input_ids"]
    assert [maker for maker, _ in trace.producers] == ["tokenizer"]


DEEP = {
    "parentheses": "(" * 3000 + "1" + ")" * 3000,
    "not": "not " * 10_000 + "1",
    "sums": "1" + "+1" * 10_000,
    "attributes": "a" + ".b" * 10_000,
    "calls": "a" + "()" * 10_000,
    "words": "a " * 10_000,
    "newer syntax": "1\ndef f[T](x): pass\ny = " + "[" * 3000 + "]" * 3000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_nests_too_deeply_is_a_problem_and_no_crash(text: str) -> None:
    with pytest.raises(SourceError, match="nested too deeply"):
        check_source(f"device_map = {text}\n", rules=list(load_rules().values()), context=Context())
