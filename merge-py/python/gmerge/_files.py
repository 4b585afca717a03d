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


# Runs the program of this package, whatever else is in the current folder.
_BOOTSTRAP = (
    "import os, sys, threading; sys.path.insert(0, sys.argv.pop(1)); from gmerge._program import main; "
    "del sys.path[0]; main()"
)


def _flags(options: dict[str, Any]) -> list[str]:
    """Flags of the program: `reverse=True` is `--reverse`, and `tmp_dir="/x"` is `--tmp-dir=/x`."""
    flags = []
    for name, value in options.items():
        if name in ("help", "version", "quiet", "progress"):
            raise TypeError(f"the flag --{name} of the program is not an argument here")
        flag = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
            flags.extend([flag] * bool(value))
        elif value is not None:
            values = value if isinstance(value, (list, tuple)) else [value]
            flags.extend(f"{flag}={os.fsdecode(v) if isinstance(v, (bytes, os.PathLike)) else v}" for v in values)
    return flags


def _name(what: str, file: Any) -> str:
    """The name of a file, which is no flag."""
    try:
        name = os.fsdecode(file)
    except TypeError:
        raise TypeError(f"{what} is {file!r}, expected the name of a file") from None
    return "./" + name if name.startswith("-") else name


def run(
    command: str,
    inputs: tuple,
    output: Any,
    progress: Callable[[int, int], object] | None,
    options: dict[str, Any],
) -> bool:
    """Runs a command of the program. Returns whether `check` has found the file sorted."""
    names = [_name("an input", file) for file in inputs]
    if command != "check":
        names += ["-o", _name("output", output)]
    if not sys.executable:
        raise RuntimeError("sys.executable is empty: the program runs in a Python interpreter of its own")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    arguments = [sys.executable, "-P", "-c", _BOOTSTRAP, package, command, *names, "--quiet", *_flags(options)]
    environment, pipe = dict(os.environ), ()
    if progress is not None:
        pipe = os.pipe()
        environment[PROGRESS] = str(pipe[1])
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=pipe[1:],
        )
    except BaseException:
        for end in pipe[:1]:
            os.close(end)
        raise
    finally:
        for end in pipe[1:]:
            os.close(end)
    try:
        if progress is not None:
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
