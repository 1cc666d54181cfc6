# SPDX-License-Identifier: MIT
"""Suites as trials: what fails in one is a finding of the trial."""
import re

from hunting import Found

LIMIT_S = 6 * 3600


def run_suite(trial, command):
    """Runs a suite to its end; returns its sum."""
    where = {"BUILD": trial.build, "MUNINN": str(trial.muninn)}
    status, out, err = trial.run(command, timeout_s=LIMIT_S, environment=where)
    text = out.decode(errors="replace")
    failed = re.findall(r"^not ok - .*$", text, re.M)
    total = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    if failed:
        raise Found(f"{len(failed)} failed: {failed[0][:300]}\n" + "\n".join(failed[:20]))
    if status != 0 or not total or total[-1][0] == "0":
        text += err.decode(errors="replace")
        raise Found(f"{command} ended with {status}: {text[-800:]}")
    return "{} passed, {} failed, {} skipped".format(*total[-1])
