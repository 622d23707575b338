"""Peers on a GPU: how they are compiled, what their drivers print, and how results are compared."""

from __future__ import annotations

import importlib
import json
import stat
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

if not (ROOT / "benchmarks" / "peers").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture
def programs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.peers._gpu_programs")


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.peers.gpu")


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_command_lines_of_the_compiler(programs, monkeypatch, tmp_path):
    """Sources of the folder behind our driver; errors that cuFFT does not name get numbers."""
    source, cuda = tmp_path / "source", tmp_path / "cuda"
    for name in ("core/SCAMP.cpp", "core/kernels.cu", "core/cpu_kernel/x.cpp", "common/common.cpp"):
        write(source / "src" / name)
    write(cuda / "include" / "cufft.h", "CUFFT_PARSE_ERROR = 0xC")
    library = write(cuda / "lib" / "libcufft.so.12")
    monkeypatch.setenv("SKTS_CUFFT", str(cuda))

    command = programs.compilation("scamp", source, tmp_path / "made", "90")
    assert command[0] == "nvcc"
    assert {"-arch=sm_90", "-D_HAS_CUDA_", "-DCUFFT_LICENSE_ERROR=15"} <= set(command)
    assert "-DCUFFT_PARSE_ERROR=12" not in command
    files = [Path(word).name for word in command if Path(word).suffix in (".cpp", ".cu")]
    assert files == ["scamp.cpp", "SCAMP.cpp", "kernels.cu", "common.cpp"]
    assert command[-4:] == ["-Xlinker", str(library), "-o", str(tmp_path / "made")]

    command = programs.compilation("cudtw", source, tmp_path / "made", "90")
    assert not any("cufft" in word.lower() for word in command)
    with pytest.raises(programs.ProgramError, match="no sources of SCAMP"):
        programs.compilation("scamp", tmp_path / "nothing", tmp_path / "made", "90")


def test_drivers_are_of_their_programs(programs):
    files = {program.driver for program in programs.PROGRAMS.values()}
    assert files == {path.name for path in programs.DRIVERS.iterdir()}


def test_programs_run_and_say_what_failed(programs, tmp_path):
    program = write(tmp_path / "program", "#!/bin/sh\necho a-1 0.5 0.25\necho\necho b-2 $1\n")
    assert programs.run_program(program, [3]) == {"a-1": [0.5, 0.25], "b-2": [3.0]}
    assert program.stat().st_mode & stat.S_IXUSR  # which it did not have
    program.write_text("#!/bin/sh\necho no device >&2\nexit 3\n")
    with pytest.raises(programs.ProgramError, match=r"program failed \(3\):\nno device"):
        programs.run_program(program, [])


def test_options(gpu, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SKTS_SCAMP", "there")
    monkeypatch.delenv("SKTS_CUDTW", raising=False)
    options = gpu.parse_options(["--only", "cudtw", "--commit", "abc"])
    assert (options.scamp, options.cudtw, options.only) == (Path("there"), None, ["cudtw"])
    assert options.output.name == "peers-gpu.json"
    with pytest.raises(gpu.ProgramError, match="no sources of cuDTW"):
        gpu.built_programs(options, tmp_path)
    write(tmp_path / "cudtw")
    assert gpu.built_programs(options, tmp_path) == tmp_path
    with pytest.raises(SystemExit):
        gpu.parse_options(["--build-only"])


def test_a_peer_that_fails_does_not_stop_the_others(gpu, monkeypatch, tmp_path, capsys):
    def fails(*_):
        yield "first"
        raise gpu.ProgramError("no device")

    monkeypatch.setattr(gpu, "ROWS", {"scamp": fails, "cudtw": lambda *_: ["second"]})
    failed = []
    found = gpu.all_rows(gpu.parse_options([]), tmp_path, tmp_path, failed)
    assert list(found) == ["first", "second"] and failed == ["SCAMP"]
    assert "no device" in capsys.readouterr().err


def test_a_peer_without_a_device_has_a_row_that_says_so(gpu, monkeypatch):
    outcomes = [gpu._rounds.Outcome(name) for name in ("skts-gpu", "tsdistances-gpu")]
    outcomes[0].wall, outcomes[1].failure = [2.0, 1.0, 3.0], "no driver"
    monkeypatch.setattr(gpu, "beside_environment", lambda *_: outcomes)
    row, _ = gpu.tsdistances_rows(None, None, None)
    assert row["of skts"] == 2.0 and row["of the peer"] is row["skts is faster by"] is None
    assert row["checked"] == "does not run here: no driver"


def test_sums_of_distances_to_the_centres_of_labels(gpu):
    """As an outcome holds them: iterations, labels, centres; distances do not know of scale."""
    rng = np.random.default_rng(0)
    shapes = gpu.Shapes.of(rng.standard_normal((5, 1, 16)))
    centers, labels = 3 * shapes.values[[1, 4], 0], np.array([0, 0, 1, 1, 1])
    outcome = gpu._rounds.Outcome("skts-gpu", result=np.r_[7, labels, centers.ravel()])
    total, found = gpu.sum_of_distances(shapes, outcome, 2)
    assert found.tolist() == labels.tolist()
    x, y = shapes.values[:, 0], shapes.values[[1, 1, 4, 4, 4], 0]
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    best = [np.correlate(*pair, "full").max() for pair in zip(x, y, strict=True)]
    assert total == pytest.approx(5 - sum(best / norms))


def test_fastest_way(gpu):
    timings = {"warp-64": [3.0, 2.0, 9.0], "warp-32": [2.5, 2.5, 2.5], "subwarp-64": [1.0]}
    assert gpu.fastest(timings, "warp") == ("warp-32", 2.5)
    assert gpu.fastest(timings, "subwarp") == ("subwarp-64", 1.0)
    assert gpu.fastest({}, "subwarp") is None


def test_ratios_are_times_of_skts(gpu):
    assert gpu.row("w", "p", "s", "", 3.0, 2.0, "")["skts is faster by"] == 1.5
    assert gpu.row("w", "p", "Tcells/s", "", 2.0, 3.0, "")["skts is faster by"] == 1.5


def test_profiles_are_compared(gpu):
    """In what float32 holds of them; where neighbours differ, so do their correlations."""
    window = 16
    series = np.random.default_rng(0).standard_normal(200).cumsum()
    places = np.arange(len(series) - window + 1)
    rows, cols = np.meshgrid(places, places, indexing="ij")
    found = gpu.correlations_with(series, window, rows.ravel(), cols.ravel()).reshape(rows.shape)
    found[abs(rows - cols) < window // 4] = -2
    indices = found.argmax(axis=1)
    distances = np.sqrt(2 * window * (1 - found.max(axis=1)))
    entries = np.zeros(len(places), gpu.ENTRY)
    entries["correlation"], entries["index"] = found.max(axis=1), indices

    error, same = gpu.compare_profiles(series, window, distances, indices, entries)
    assert error < gpu.CORRELATION["double"] and same == 1
    entries["index"][3] = 150
    error, same = gpu.compare_profiles(series, window, distances, indices, entries)
    assert error == pytest.approx(found[3].max() - found[3, 150])
    assert same == pytest.approx(1 - 1 / len(places))
    entries["index"][3] = 2**32 - 1  # no neighbour
    assert gpu.compare_profiles(series, window, distances, indices, entries)[0] == np.inf
    entries["index"][3], entries["correlation"][5] = indices[3], np.nan
    assert gpu.compare_profiles(series, window, distances, indices, entries)[0] == np.inf


def test_squares_are_compared(gpu):
    own = np.array([1.0, 2.0, 4.0, 8.0])
    assert gpu.compare_squares(own, own * (1 + 1e-6)) == (pytest.approx(1e-6), 0)
    error, share = gpu.compare_squares(own, np.array([1.0, 2.2, 4.0, np.nan]))
    assert (error, share) == (np.inf, 0.5)


def test_walks_are_normalised(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "VALUES", 32 * 128)
    query, series = gpu.walks(np.random.default_rng(0), 127)
    assert query.dtype == series.dtype == np.float32
    assert query.shape == (127,) and series.shape == (32, 127)
    np.testing.assert_allclose(series.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(series.std(axis=1), 1, atol=1e-5)


def test_the_page_has_a_group_of_them(monkeypatch, tmp_path):
    """Beside the peers on a CPU, whose rows have threads and are drawn."""
    for name in ("docutils", "sphinx"):
        pytest.importorskip(name)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    page = importlib.import_module("benchmark_records")
    facts = {"name": "n", "device": "d", "versions": {}, "commit": "c", "date": "2026-01-01"}
    facts["command"] = "python -m one"
    row = {"work": "w", "peer": "SCAMP, double", "skts is faster by": 3.0}
    write(tmp_path / "peers-gpu.json", json.dumps(facts | {"rows": [row]}))
    text = page.page([tmp_path / "peers-gpu.json"])
    assert page.GROUPS["peers-gpu"][0] in text and page.GROUPS["peers"][0] not in text
