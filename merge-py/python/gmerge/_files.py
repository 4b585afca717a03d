"""Files of binary numbers, by the program `gmerge` in a process of its own.

The program handles signals and limits its memory, so it does not run in the caller's process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Callable

from ._program import PROGRESS

# The exit status of `gmerge check` for a file that is not sorted.
_NOT_SORTED = 1


def _flags(options: dict[str, Any]) -> list[str]:
    """Flags of the program: `reverse=True` is `--reverse`, and `tmp_dir="/x"` is `--tmp-dir=/x`."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not False and value is not None:
            values = value if isinstance(value, (list, tuple)) else [value]
            flags.extend(f"{flag}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for v in values)
    return flags


def run(command: str, files: list, progress: Callable[[int, int], object] | None, options: dict[str, Any]) -> bool:
    """Runs a command of the program. Returns whether `check` has found the files sorted."""
    names = ["./" + name if (name := os.fsdecode(file)).startswith("-") and name != "-o" else name for file in files]
    arguments = [sys.executable, "-m", "gmerge", command, *names, "--quiet", *_flags(options)]
    environment, pipe = dict(os.environ), ()
    if progress is not None:
        pipe = os.pipe()
        environment[PROGRESS] = str(pipe[1])
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        pass_fds=pipe[1:],
    )
    try:
        if progress is not None:
            os.close(pipe[1])
            with open(pipe[0]) as lines:
                for line in lines:
                    done, expected = map(int, line.split())
                    progress(done, expected)
        _, said = process.communicate()
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    message = said.decode(errors="replace").strip().removeprefix("gmerge: ")
    if command == "check" and process.returncode == _NOT_SORTED:
        return False
    if process.returncode < 0:
        raise RuntimeError(f"gmerge was ended by signal {-process.returncode}")
    if process.returncode:
        raise RuntimeError(message)
    return True
