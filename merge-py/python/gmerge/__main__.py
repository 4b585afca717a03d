"""`python -m gmerge` is the program `gmerge`."""

from ._program import main

main()
