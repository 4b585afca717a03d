"""The program `gmerge`, which `pip install` puts on the path."""

from __future__ import annotations

import os
import sys
import threading

# The number of a pipe for the progress, if another process wants it.
PROGRESS = "GMERGE_PYTHON_PROGRESS"
INTERVAL = 0.1


def main() -> None:
    from . import _native

    pipe = os.environ.pop(PROGRESS, None)
    ended = threading.Event()

    def report(pipe: int) -> None:
        while not ended.wait(INTERVAL):
            os.write(pipe, b"%d %d\n" % _native.progress())

    if pipe is not None:
        threading.Thread(target=report, args=(int(pipe),), daemon=True).start()
    status = _native.run(["gmerge", *sys.argv[1:]])
    ended.set()
    sys.exit(status)


if __name__ == "__main__":
    main()
