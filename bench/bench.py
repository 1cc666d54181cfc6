# SPDX-License-Identifier: MIT
"""What the parts of the bench share: the columns, runs of a command in each, and marks."""
import math
import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from typing import Optional

import inputs
import measure


@dataclass
class Column:
    """One way of running a command: natively, or under a tool."""

    name: str
    prefix: list
    repetitions: int
    tool: Optional[str] = None  # of muninn's
    compared: bool = True  # False: it prints into the program's own output


class Bench:
    def __init__(self, options, columns, cache, scratch):
        self.options = options
        self.columns = columns
        self.cache = cache
        self.scratch = scratch
        self.environment = inputs.quiet_environment(cache)
        self.failures = []
        self.marks = []
        self.distances_ns = []

    def fail(self, message):
        self.failures.append(message)
        print(f"FAILED: {message}", flush=True)

    def mark(self, what, value, limit, unit, at_least=False):
        """Records a promise kept or not; the text that shows it, none when nothing is promised."""
        if limit is None:
            return ""
        met = value >= limit if at_least else value <= limit
        self.marks.append({"what": what, "value": value, "limit": limit, "unit": unit,
                           "at_least": at_least, "met": met})
        return "PASS" if met else "OVER"

    def measure_distance(self):
        """Where the host has put the two processors, which it may change at any time, decides what
        it costs a program that another one reads along."""
        argv = [inputs.program(self.cache, "distance.c")]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        self.distances_ns.append(int(done.stdout))

    def ours(self):
        """Native and muninn's columns: what is judged."""
        return [column for column in self.columns if column.tool or column.name == "native"]

    def column(self, tool):
        """muninn's column of this tool, or None."""
        return next((column for column in self.columns if column.tool == tool), None)

    def run(self, what, argv, stdin=None, peak=False):
        """measure.run(), or None with the failure noted. Files that a tool has written are gone."""
        files = files_folder(self.scratch)
        try:
            return measure.run(argv, self.environment, self.scratch, stdin, peak=peak)
        except (measure.MeasureError, OSError) as error:
            self.fail(f"{what}: {error}")
            return None
        finally:
            shutil.rmtree(files, ignore_errors=True)
            os.makedirs(files)

    def interleaved(self, name, argv, stdin=None, columns=None):
        """Runs `argv` in every column, turn by turn; {column: [Run]}, or None if one failed."""
        columns = columns or self.columns
        runs = {column.name: [] for column in columns}
        for turn in range(max(column.repetitions for column in columns)):
            self.measure_distance()
            for column in columns:
                if turn >= column.repetitions:
                    continue
                run = self.run(f"{name} under {column.name}", [*column.prefix, *argv], stdin)
                if run is None:
                    return None
                runs[column.name].append(run)
                if not self.same(name, column, runs["native"][0], run):
                    return None
        return runs

    def same(self, name, column, native, run):
        where = f"{name} under {column.name}"
        if column.name == "native" and run.status != 0:
            self.fail(f"{name}: native run ended with {run.status}: {run.stderr[:200]!r}")
        elif run.status != native.status:
            self.fail(f"{where}: status {run.status}, native {native.status}: {run.stderr[:200]!r}")
        elif column.compared and run.digest != native.digest:
            self.fail(f"{where}: output differs from native")
        elif column.compared and run.stderr != native.stderr:
            self.fail(f"{where}: stderr differs from native: {run.stderr[:200]!r}")
        else:
            return True
        return False


def files_folder(scratch):
    """Where tools write their files."""
    return os.path.join(scratch, "files")


def spread(values):
    return (max(values) - min(values)) / min(values) if min(values) > 0 else 0.0


def noise_text(row):
    return f"{row['spread']:.0%}" if len(row["runs_s"]) > 1 else "once"


def summary(runs, field):
    values = [getattr(run, field) for run in runs]
    return {
        "min_s": min(values),
        "median_s": statistics.median(values),
        "spread": spread(values),
        "runs_s": values,
    }


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
