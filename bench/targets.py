# SPDX-License-Identifier: MIT
"""The promises that the bench judges, as data. None: nothing is promised, it is only shown."""
from dataclasses import dataclass
from typing import Optional

MIB_KIB = 1024  # KiB of a MiB


@dataclass(frozen=True)
class Targets:
    """What one tool promises; ratios are to native."""

    program: Optional[float] = None  # CPU of any program of the engine's set
    churn: Optional[float] = None  # CPU of a program that does little but allocate, instead
    geomean: Optional[float] = None  # CPU, over the engine's set
    wall_geomean: Optional[float] = None
    faster: Optional[float] = None  # times faster than Valgrind's tool, by the geomeans
    below_heaptrack: bool = False  # churn is faster than under heaptrack
    parallel: Optional[float] = None  # wall of two threads, of one doing half the work
    start_ms: Optional[float] = None  # of `true`
    small_kib: Optional[float] = None  # added to a small program
    # Peak of a large program: at most `large` times native's and so much more.
    large: Optional[float] = None
    large_more_kib: float = 0


TOOLS = {
    "none": Targets(
        program=2.0, geomean=1.35, parallel=1.1, start_ms=25.0, small_kib=48 * MIB_KIB
    ),
    "memcheck": Targets(
        program=4.5,
        churn=6.0,
        geomean=2.5,
        faster=9.0,
        parallel=1.15,
        start_ms=40.0,
        large=2.4,
        large_more_kib=64 * MIB_KIB,
    ),
    "massif": Targets(
        churn=3.0, geomean=1.6, wall_geomean=1.45, below_heaptrack=True, parallel=1.15
    ),
}

OVER_NONE = {"count": 1.15, "trace": 4.0}  # CPU, over that of none, in the geomean
TRANSLATE_NS = 350.0
LEAKS_S = 3.0  # a search in a heap of 10 million blocks
RECORD_NS = 50.0  # on the wire: 20 million a second
EVENT_BYTES = 12.0  # of a recording, before compression
FIRST_ANSWER_MS = 2000.0  # of a recording of 1 GiB
READER_KIB = 512 * MIB_KIB
PICTURE_MS = 3000.0  # of a recording of 100 million events in the viewer
INTERACTION_MS = 200.0  # CPU of the server
VIEW_KIB = 1024 * MIB_KIB


def of(tool):
    return TOOLS.get(tool, Targets())


def of_program(tool, workload):
    """The limit of one program's CPU ratio, or None."""
    limits = of(tool)
    if workload.churn and limits.churn:
        return limits.churn
    return limits.program if workload.in_set else None
