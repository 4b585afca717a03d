"""Times of this package beside numpy, torch and CuPy, as tables.

    python benches/arrays.py            # all processors
    taskset -c 0 python benches/arrays.py

Each figure is the median of the runs, in ns an element; arrays of a GPU are timed by CUDA events.
"""

import argparse
import os
import statistics
import sys
import time

import gmerge
import numpy as np


def median(call, fresh, seconds):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
        data = fresh()
        begin = time.perf_counter()
        call(data)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def host_rows(n, dtype, rng):
    x = rng.standard_normal(n).astype(dtype) if dtype[0] == "f" else rng.integers(0, 2**31, n).astype(dtype)
    needles = x[: n // 10].copy()
    sorted = np.sort(x)
    few = (x * 1000).astype(dtype) if dtype[0] == "f" else x % 1000
    k = min(n, 100)
    cpu = dict(engine="cpu")
    return [
        ("sort", lambda x: np.sort(x), lambda x: gmerge.sort(x, **cpu), x),
        ("argsort", lambda x: np.argsort(x, kind="stable"), lambda x: gmerge.argsort(x, **cpu), x),
        ("top 100", lambda x: np.sort(np.partition(x, n - k)[n - k :]), lambda x: gmerge.topk(x, k, **cpu), x),
        (
            "unique, counts",
            lambda x: np.unique(x, return_counts=True),
            lambda x: gmerge.unique(x, return_counts=True, **cpu),
            few,
        ),
        (
            "searchsorted",
            lambda x: np.searchsorted(sorted, x),
            lambda x: gmerge.searchsorted(sorted, x, **cpu),
            needles,
        ),
    ]


def host(sizes, dtypes, seconds):
    rng = np.random.default_rng(1)
    print(f"numpy {np.__version__}, {len(os.sched_getaffinity(0))} processors\n")
    print("| function | type | elements | numpy | gmerge | times as fast |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for dtype in dtypes:
        for n in sizes:
            for name, theirs, ours, x in host_rows(n, dtype, rng):
                a, b = median(theirs, x.copy, seconds), median(ours, x.copy, seconds)
                print(f"| {name} | {dtype} | {n:,} | {a / n * 1e9:.2f} | {b / n * 1e9:.2f} | {a / b:.1f} |", flush=True)


def calls():
    """Microseconds of a call on 100 elements."""
    x = np.random.default_rng(1).standard_normal(100)
    for dtype in ("f8", "i4"):
        y = x.astype(dtype)
        for name, call in (
            ("np.sort", np.sort),
            ("gmerge.sort", gmerge.sort),
            ("np.argsort", lambda y: np.argsort(y, kind="stable")),
            ("gmerge.argsort", gmerge.argsort),
        ):
            times = []
            for _ in range(7):
                begin = time.perf_counter()
                for _ in range(20_000):
                    call(y)
                times.append((time.perf_counter() - begin) / 20_000)
            print(f"{name} of 100 {dtype}: {statistics.median(times) * 1e6:.2f} µs")


def gpu(sizes, seconds):
    import torch

    def events(call, repeats=9):
        times = []
        for _ in range(repeats):
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            call()
            b.record()
            torch.cuda.synchronize()
            times.append(a.elapsed_time(b))
        return statistics.median(times)

    try:
        import cupy
    except ImportError:
        cupy = None
    print(f"\ntorch {torch.__version__}, {torch.cuda.get_device_name()}, ms\n")
    print(
        "| function | type | elements | torch | CuPy | gmerge | host µs a call | copy |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for dtype in (torch.float32, torch.int32, torch.int64):
        for n in sizes:
            x = (torch.randn(n, device="cuda") * 1e6).to(dtype)
            y = cupy.from_dlpack(x) if cupy else None
            rows = [
                ("sort", lambda: torch.sort(x), (lambda: cupy.sort(y)), lambda: gmerge.sort(x)),
                (
                    "argsort",
                    lambda: torch.argsort(x, stable=True),
                    (lambda: cupy.argsort(y)),
                    lambda: gmerge.argsort(x),
                ),
                ("top 1024", lambda: torch.topk(x, 1024), None, lambda: gmerge.topk(x, 1024)),
                ("unique", lambda: torch.unique(x), (lambda: cupy.unique(y)), lambda: gmerge.unique(x)),
            ]
            for name, theirs, cupys, ours in rows:
                if n < 1024 and "1024" in name:
                    continue
                figures = []
                for call in (theirs, cupys if cupy else None, ours):
                    try:
                        if call:
                            call(), call()
                        figures.append(f"{events(call):.3f}" if call else "")
                    except Exception as error:
                        figures.append(type(error).__name__)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(5):
                    ours()
                took = (time.perf_counter() - begin) / 5
                torch.cuda.synchronize()
                copy = events(lambda: x.clone())
                print(
                    f"| {name} | {str(dtype)[6:]} | {n:,} | {' | '.join(figures)} | {took * 1e6:.0f} | {copy:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--sizes", type=lambda s: [int(float(n)) for n in s.split(",")], default=[1000, 100_000, 1_000_000]
    )
    parser.add_argument("--types", type=lambda s: s.split(","), default=["f4", "f8", "i4", "i8"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--gpu", action="store_true")
    arguments = parser.parse_args()
    if arguments.gpu:
        gpu(arguments.sizes, arguments.seconds)
    else:
        calls()
        host(arguments.sizes, arguments.types, arguments.seconds)
    sys.exit(0)
