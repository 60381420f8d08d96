"""`shapeguard trace` as a user meets it; the traced programs write event lines themselves, so no torch is needed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

WRITE = """
import json, os, sys
path = os.path.join(os.environ["SHAPEGUARD_RUN_DIR"], f"rank-0.pid-{os.getpid()}.jsonl")
stream = open(path, "a", buffering=1)
def put(type, **fields):
    stream.write(json.dumps({"type": type, "step": 0, "phase": "train", **fields}) + "\\n")
put("start", schema=1, rank=0, world_size=1, pid=os.getpid(), warmup_steps=2, device={"kind": "sim"})
put("compile", n=1, kind="inference", outcome="compiled", key="k", name="g", region=1, inputs=[])
put("compile", n=2, kind="region", outcome="compiled", key="k", region=1, inputs=[])
"""


def trace(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=cwd, capture_output=True, text=True, timeout=60, check=False, **more)


def command(*words: str) -> Sequence[str]:
    return [sys.executable, "-m", "shapeguard", "trace", *words]


def script(folder: Path, body: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(WRITE + dedent(body), encoding="utf-8")
    return path


def summary(folder: Path, run: str = ".shapeguard/runs/train-1") -> Any:
    return json.loads((folder / run / "summary.json").read_text(encoding="utf-8"))


def test_the_program_keeps_its_output_and_its_exit_code(tmp_path: Path) -> None:
    script(tmp_path, "print('on stdout'); print('on stderr', file=sys.stderr); sys.exit(3)")
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == "on stdout\n"
    assert done.stderr.startswith("on stderr\n")
    assert "the program ended with exit code 3" in done.stderr
    assert summary(tmp_path)["exit_code"] == 3
    assert summary(tmp_path)["totals"]["regions"] == 1


def test_arguments_after_the_program_are_its_own(tmp_path: Path) -> None:
    script(tmp_path, "print(sys.argv[1:])")
    done = trace("--max-steps", "3", "train.py", "--max-steps", "9", "--json", "-q", "--", "-m", cwd=tmp_path)
    assert done.stdout == "['--max-steps', '9', '--json', '-q', '--', '-m']\n"
    assert done.returncode == 0


def test_the_settings_reach_the_program_by_its_environment(tmp_path: Path) -> None:
    script(tmp_path, "print({k: v for k, v in os.environ.items() if k.startswith('SHAPEGUARD_')})")
    done = trace("--max-steps=3", "--inner", "meta", "--target", "trn3", "--stub-weights", "train.py", cwd=tmp_path)
    seen = eval(done.stdout)
    seen.pop("SHAPEGUARD_NO_CACHE", None)  # set for all tests
    assert seen == {
        "SHAPEGUARD_RUN_DIR": str(tmp_path.resolve() / ".shapeguard/runs/train-1"),
        "SHAPEGUARD_DEVICE": "sim",
        "SHAPEGUARD_INNER": "meta",
        "SHAPEGUARD_TARGET": "trn3",
        "SHAPEGUARD_STUB_WEIGHTS": "1",
        "SHAPEGUARD_MAX_STEPS": "3",
        "SHAPEGUARD_WARMUP_STEPS": "2",
        "SHAPEGUARD_ROOT": str(tmp_path.resolve()),
        "SHAPEGUARD_DEVICES": "1",
    }


def test_a_module_and_a_command_are_traced_like_a_script(tmp_path: Path) -> None:
    script(tmp_path, "print(__name__, sys.argv[1:])")
    assert trace("-m", "train", "--run-dir", "x", cwd=tmp_path).stdout == "__main__ ['--run-dir', 'x']\n"
    done = trace("--", sys.executable, "-u", "train.py", "-v", cwd=tmp_path)
    assert done.stdout == "__main__ ['-v']\n"
    assert summary(tmp_path, ".shapeguard/runs/train-2")["totals"]["regions"] == 1
    assert summary(tmp_path, ".shapeguard/runs/train-2")["command"][:1] == ["--"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing.py",), "error: there is no file nothing.py\nhint: check the path\n"),
        (
            (".",),
            "error: . is a directory\nhint: give a script in it, or `-m` and a package\n",
        ),
        (
            ("--", "no-such-command"),
            "error: there is no command no-such-command\nhint: give a `.py` file without `--`, or check the name\n",
        ),
        (("--",), "error: no command follows `--`\nhint: for example: shapeguard trace -- torchrun train.py\n"),
        (
            ("--", "python", "-I", "train.py"),
            "error: `python -I` ignores PYTHONPATH, by which the device is handed to the program\nhint: leave out -I\n",
        ),
        (
            ("--", "python", "-uE", "train.py"),
            "error: `python -E` ignores PYTHONPATH, by which the device is handed to the program\nhint: leave out -E\n",
        ),
        (
            ("--run-dir", "taken", "train.py"),
            "error: the run folder taken is not empty\nhint: give another with --run-dir, or remove it\n",
        ),
        (
            ("--run-dir", "train.py/run", "train.py"),
            "error: cannot make the run folder train.py/run: Not a directory\nhint: give another with --run-dir\n",
        ),
        (
            ("--world", "tp=2,fsdp", "train.py"),
            "error: --world tp=2,fsdp: no sizes\nhint: write --world tp=2,fsdp=2, or the number of ranks\n",
        ),
        (("--world", "tp=2", "--rank", "2", "train.py"), "error: --rank 2: the world has 2 ranks\nhint: give 0 to 1\n"),
        (
            ("--rank", "1", "train.py"),
            "error: --rank names a rank of a simulated world\nhint: add --world, such as --world tp=2,fsdp=2\n",
        ),
        (
            ("--world", "4", "--", "python", "-m", "torch.distributed.run", "train.py"),
            "error: --world runs a rank without a launcher, and the command is `torch.distributed.run`\n"
            "hint: give the script itself, or leave out --world to start all ranks\n",
        ),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_2(tmp_path: Path, words: Sequence[str], message: str) -> None:
    script(tmp_path, "print('must not run')")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    done = trace(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert not (tmp_path / ".shapeguard").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "trn1", "train.py"), "torch_neuronx runs on Trn2 and Trn3 only; use trn2 or trn3."),
        (("--json", "train.py"), "standard output belongs to the traced program; write --output json=PATH instead."),
        (("--output-format", "json", "train.py"), "write --output json=PATH instead."),
        ((), "No program was given: write `shapeguard trace train.py`."),
        (("--run-dri", "x", "train.py"), "No such option '--run-dri'. Did you mean '--run-dir'?"),
    ],
)
def test_a_bad_option_is_exit_2(tmp_path: Path, words: Sequence[str], message: str) -> None:
    script(tmp_path, "print('must not run')")
    done = trace(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.parametrize("words", [("-c", "print(1)", "-I"), ("-W", "ignore", "train.py"), ("train.py", "-E")])
def test_words_that_only_look_like_an_isolated_python_are_fine(tmp_path: Path, words: Sequence[str]) -> None:
    script(tmp_path, "")
    assert trace("--", sys.executable, *words, cwd=tmp_path).returncode == 0


def test_a_python_without_torch_is_exit_3_before_anything_runs(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    script(tmp_path, "print('must not run')")
    done = trace("--", str(tmp_path / "bare/bin/python"), "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: torch is not installed here\nhint: python -m pip install 'shapeguard[trace]'\n"


def test_a_neuron_device_that_is_not_there_is_exit_3(tmp_path: Path) -> None:
    script(tmp_path, "print('must not run')")
    done = trace("--device", "neuron", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: there is no torch_neuronx and no device here\nhint: use --device sim, or see `shapeguard doctor`\n"
    )


def test_a_syntax_error_is_pythons_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def broken(:\n")
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "no process of the program imported torch" in done.stderr


def test_an_exception_keeps_its_traceback(tmp_path: Path) -> None:
    script(tmp_path, "raise ValueError('mine')")
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "ValueError: mine" in done.stderr
    assert summary(tmp_path)["totals"]["regions"] == 1


def test_a_killed_program_leaves_what_it_wrote(tmp_path: Path) -> None:
    script(tmp_path, 'stream.write(\'{"type": "comp\'); stream.flush(); os.kill(os.getpid(), 9)')
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 137
    assert "the program was ended by SIGKILL" in done.stderr
    found = summary(tmp_path)
    assert (found["exit_code"], found["signal"], found["totals"]["regions"]) == (137, "SIGKILL", 1)
    assert [row["code"] for row in found["problems"]] == ["cut-off"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_is_handed_to_the_program_and_is_its_exit_code(tmp_path: Path, number: signal.Signals) -> None:
    script(
        tmp_path, f"import signal, time; signal.signal({int(number)}, 0); print('ready', flush=True); time.sleep(30)"
    )
    with subprocess.Popen(command("train.py"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(number)
        assert running.wait(20) == 128 + number
    assert summary(tmp_path)["signal"] == number.name


def test_a_program_may_answer_a_signal_in_its_own_way(tmp_path: Path) -> None:
    body = """
    import signal, time
    def leave(*_):
        put("end", exit="signal", steps=0); print("saved", flush=True); sys.exit(7)
    signal.signal(signal.SIGTERM, leave)
    print("ready", flush=True)
    time.sleep(30)
    """
    script(tmp_path, body)
    with subprocess.Popen(command("train.py"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline() == b"saved\n"
        assert running.wait(20) == 7
    assert summary(tmp_path)["problems"] == []


def test_ctrl_c_at_a_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    body = """
    import signal, time
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    print("ready", flush=True)
    time.sleep(1.5)
    time.sleep(0.5)
    open("seen.txt", "w").write(str(len(seen)))
    sys.exit(130)
    """
    script(tmp_path, body)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, command("train.py"))
    text = b""
    while b"ready" not in text:
        text += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    text = b""
    while True:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert (tmp_path / "seen.txt").read_text() == "1"
    assert b"run: .shapeguard/runs/train-1" in text


def test_a_program_that_forks_changes_directory_and_closes_its_output_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    body = """
    os.chdir("elsewhere")
    if os.fork() == 0:
        os._exit(5)
    os.wait()
    sys.stdout.close()
    os.close(1)
    put("end", exit="ok", steps=0)
    """
    script(tmp_path, body)
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert summary(tmp_path)["totals"]["regions"] == 1
    assert not (tmp_path / "elsewhere" / ".shapeguard").exists()


def test_a_program_without_a_model_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRITE.split('put("compile"')[0])
    done = trace("train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("no forward of a model and no compile was seen\n")


def test_runs_are_numbered_private_and_kept_out_of_git(tmp_path: Path) -> None:
    script(tmp_path, "")
    for _ in range(2):
        trace("train.py", cwd=tmp_path)
    runs = tmp_path / ".shapeguard/runs"
    assert sorted(path.name for path in runs.iterdir()) == ["train-1", "train-2"]
    assert (tmp_path / ".shapeguard/.gitignore").read_text() == "*\n"
    assert {path.stat().st_mode & 0o777 for path in (runs, runs / "train-1", tmp_path / ".shapeguard")} == {0o700}


def test_runs_that_start_together_get_folders_of_their_own(tmp_path: Path) -> None:
    script(tmp_path, "")
    running = [
        subprocess.Popen(command("train.py"), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    found = [json.loads(path.read_text()) for path in tmp_path.glob(".shapeguard/runs/*/summary.json")]
    assert [row["totals"]["regions"] for row in found] == [1, 1, 1, 1]


def test_an_empty_run_folder_is_used_and_a_summary_goes_where_it_is_asked_for(tmp_path: Path) -> None:
    script(tmp_path, "")
    (tmp_path / "run").mkdir()
    done = trace("--run-dir", "run", "--output", "json=out.json", "train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text()) == summary(tmp_path, "run")


def test_the_summary_is_the_same_in_another_folder_but_for_times(tmp_path: Path) -> None:
    texts = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        path = script(folder, "")
        trace(str(path), "--token", "secret", f"--data={folder}/d", cwd=folder)
        found = summary(folder)
        assert found.pop("times")["wall_s"] > 0
        texts.append(json.dumps(found))
    assert texts[0] == texts[1]
    assert "secret" not in texts[0] and str(tmp_path) not in texts[0]
    assert json.loads(texts[0])["command"] == ["train.py", "--token", "***", "--data=d"]


@pytest.mark.parametrize(("limit", "code"), [("any", 1), ("after-warmup", 0)])
def test_a_limit_is_judged_when_the_program_succeeded(tmp_path: Path, limit: str, code: int) -> None:
    script(tmp_path, "")
    assert trace("--fail-on", limit, "train.py", cwd=tmp_path).returncode == code
    script(tmp_path, "sys.exit(4)")
    assert trace("--fail-on", limit, "train.py", cwd=tmp_path).returncode == 4


def test_the_supervisor_never_imports_torch(tmp_path: Path) -> None:
    script(tmp_path, "")
    check = "import sys; from shapeguard.cli.main import main; "
    check += "code = main(['trace', 'train.py']); sys.exit('torch' in sys.modules or code)"
    assert subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_a_run_whose_supervisor_was_killed_can_be_read(tmp_path: Path) -> None:
    script(tmp_path, "import time; print('ready', flush=True); time.sleep(2)")
    with subprocess.Popen(command("train.py"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.kill()
        running.wait(20)
    done = subprocess.run(
        [sys.executable, "-m", "shapeguard", "report", ".shapeguard/runs/train-1", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["totals"]["regions"] == 1


def test_a_report_that_cannot_be_written_does_not_hide_the_programs_exit_code(tmp_path: Path) -> None:
    script(tmp_path, "print('done')")
    done = trace("--output", "json=nowhere/out.json", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "done\n")
    assert "nowhere/out.json" in done.stderr
    script(tmp_path, "sys.exit(4)")
    assert trace("--output", "json=nowhere/out.json", "train.py", cwd=tmp_path).returncode == 4
    assert summary(tmp_path, ".shapeguard/runs/train-2")["exit_code"] == 4
