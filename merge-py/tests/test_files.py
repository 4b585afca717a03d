"""Files, by the program."""

import subprocess
import sys

import gmerge
import numpy as np
import pytest


def test_files(tmp_path):
    x = np.random.default_rng(1).standard_normal(100_000).astype("f4")
    a, b, out = tmp_path / "a.f32", tmp_path / "-b.f32", tmp_path / "out.f32"
    x[:40_000].tofile(a)
    x[40_000:].tofile(b)
    seen = []
    gmerge.sort_file(a, b, output=out, progress=lambda done, expected: seen.append((done, expected)))
    assert np.array_equal(np.fromfile(out, "f4"), np.sort(x))
    assert all(done <= expected for done, expected in seen)
    assert gmerge.check_file(out) is True and gmerge.check_file(a) is False
    gmerge.sort_file(a, output=a)
    gmerge.sort_file(b, output=b)
    gmerge.merge_files(a, b, output=tmp_path / "merged.f32", engine="cpu")
    assert np.array_equal(np.fromfile(tmp_path / "merged.f32", "f4"), np.sort(x))
    gmerge.sort_file(a, output=a, reverse=True)
    assert np.array_equal(np.fromfile(a, "f4"), np.sort(x[:40_000])[::-1])


def test_errors_name_the_file(tmp_path):
    with pytest.raises(RuntimeError, match="none.f32"):
        gmerge.sort_file(tmp_path / "none.f32", output=tmp_path / "out.f32")
    with pytest.raises(RuntimeError, match="none.f32"):
        gmerge.check_file(tmp_path / "none.f32")
    with pytest.raises(RuntimeError, match="--fast"):
        gmerge.sort_file(tmp_path / "a.f32", output=tmp_path / "b.f32", fast=True)
    assert list(tmp_path.iterdir()) == []


def test_an_exception_of_progress_ends_the_program(tmp_path):
    np.random.default_rng(1).integers(0, 2**62, 30_000_000).tofile(tmp_path / "a.i64")

    def stop(done, expected):
        raise KeyError("stop")

    with pytest.raises(KeyError):
        gmerge.sort_file(tmp_path / "a.i64", output=tmp_path / "b.i64", progress=stop, engine="cpu")
    assert [file.name for file in tmp_path.iterdir()] == ["a.i64"]


def test_the_program(tmp_path):
    (tmp_path / "keys.u32").write_bytes(np.array([3, 1, 2], "u4").tobytes())
    program = [sys.executable, "-m", "gmerge"]
    said = subprocess.run([*program, "--version"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout.startswith("gmerge ")
    assert subprocess.run([*program, "check", tmp_path / "keys.u32"], capture_output=True).returncode == 1


def test_the_import_is_light():
    code = (
        "import sys, time; begin = time.perf_counter(); import gmerge; took = time.perf_counter() - begin; "
        "assert 'numpy' not in sys.modules; "
        "assert 'libcuda' not in open('/proc/self/maps').read(); print(took)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)
    ]
    assert min(times) < 0.02


def test_other_files_in_the_folder_do_not_matter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("gmerge", "threading", "types"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(0)")
    np.array([2, 1], "u4").tofile("-o")
    assert gmerge.check_file("-o", type="u32") is False
    gmerge.sort_file("-o", output="-", type="u32")
    assert np.fromfile("./-", "u4").tolist() == [1, 2]
    with pytest.raises(TypeError, match="--help"):
        gmerge.check_file("-o", help=True)
    with pytest.raises(TypeError, match="an input"):
        gmerge.sort_file(["a.u32"], output="b.u32")
