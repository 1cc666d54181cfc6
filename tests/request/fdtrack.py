# SPDX-License-Identifier: MIT
"""--track-fds: what is listed at the end is what is open, with the stack that opened it; wrong uses
are told, and right ones are not."""
import re

STRESSES = ((), ("--stress=tiny-blocks",), ("--stress=no-link",), ("--stress=signals",))


def events(err, pid=None):
    """[(sentence, number of stack lines, inherited, [titles])] of the log, of one process."""
    found = []
    for number, text in re.findall(r"^==(\d+)== ?(.*)$", err, re.M):
        if pid and number != pid:
            continue
        if re.match(r"   (at|by) 0x", text) and found:
            found[-1][1] += 1
        elif "inherited from parent" in text and found:
            found[-1][2] = True
        elif text.startswith(" ") and found:
            found[-1][3].append(text.strip())
        elif text.strip():
            found.append([text, 0, False, []])
    return found


def listed(found):
    """{number: (frames, inherited)} of the list."""
    rows = {}
    for text, frames, inherited, _ in found:
        match = re.match(r"Open (?:file descriptor|\S+ socket) (\d+):", text)
        if match:
            rows[int(match[1])] = (frames, inherited)
    return rows


def opened(out):
    """What the (last) process that listed its descriptors saw."""
    out = out[out.rfind("pid "):]
    return {int(n) for n in re.findall(r"^open (\d+)$", out, re.M)}


class FdTests:
    """`run` and `verdict` are the suite's."""

    def __init__(self, muninn, program, run, verdict):
        self.muninn, self.program, self.run, self.verdict = muninn, program, run, verdict

    def track(self, how, mode, *options):
        return self.run(self.muninn, "--tool=none", f"--track-fds={how}", *options, self.program, mode)

    def compare(self, name, out, err, how="yes", inherited=None):
        """The list against what the program saw, and the first line."""
        pid = re.findall(r"^pid (\d+)$", out, re.M)
        if not pid:
            self.verdict(name, f"{out} {err}")
            return
        found = events(err, pid[-1])
        rows, seen = listed(found), opened(out)
        expected = {fd for fd in seen if fd > 2 or how == "all"}
        std = len([fd for fd in seen if fd <= 2])
        summary = f"FILE DESCRIPTORS: {len(seen)} open ({std} std) at exit."
        why = ""
        if set(rows) != expected:
            why = f"listed {sorted(rows)}, not {sorted(expected)}"
        elif not any(text.startswith(summary) for text, *_ in found):
            why = f"no {summary!r} in {found[:3]}"
        for fd, (frames, is_inherited) in rows.items():
            if inherited is not None and is_inherited != (fd in inherited):
                why = why or f"{fd}: inherited is {is_inherited}"
            if (frames == 0) != is_inherited:
                why = why or f"{fd}: {frames} frames, inherited {is_inherited}"
        self.verdict(name, why)

    def lists(self):
        for stress in STRESSES:
            for mode in ("every", "closes", "race"):
                _, out, err = self.track("yes", mode, *stress)
                self.compare(" ".join([f"fds: {mode}", *stress]), out, err)
        for mode in ("every", "nothing"):
            _, out, err = self.track("all", mode)
            self.compare(f"fds: {mode} with the standard ones", out, err, "all")
        status, out, err = self.track("yes", "kill")
        self.compare("fds: a process that is killed", out, err)
        self.verdict("fds: it dies by its signal", "" if status == -15 else f"{status}")
        for how in ("bad", "no"):
            _, _, err = self.track(how, "every")
            self.verdict(f"fds: --track-fds={how} lists nothing",
                         err if "FILE DESC" in err or "Open file" in err else "")

    def processes(self):
        _, out, err = self.track("yes", "children")
        child_out = out[:out.rfind("pid ")]
        self.compare("fds: a forked child's own list", child_out, err)
        self.compare("fds: a parent whose children closed theirs", out, err)
        bad = [e for e in events(err) if "already closed" in e[0]]
        self.verdict("fds: a vfork child's closes are not its parent's", f"{bad}" if bad else "")
        _, out, err = self.track("yes", "exec", "--trace-children=yes")
        rows = opened(out)
        self.compare("fds: across execve they are inherited", out, err, "yes",
                     {fd for fd in rows if fd > 2})
        self.verdict("fds: and close on exec", "" if rows else "nothing is open")

    def wrong_uses(self):
        for how in ("yes", "all", "bad"):
            for stress in STRESSES if how == "bad" else ((),):
                _, _, err = self.track(how, "bad", *stress)
                self.judge_bad(how, stress, events(err))

    def sweeps(self):
        """A loop that closes everything is no thousand errors."""
        _, out, err = self.track("all", "sweep")
        wrong = [e[0] for e in events(err) if "already closed" in e[0] or "Invalid" in e[0]]
        good = wrong == ["Invalid file descriptor 40 in syscall close()"]
        self.verdict("fds: a sweep is not wrong", "" if good else f"{wrong}")
        self.compare("fds: what a sweep leaves", out, err, "all")

    def judge_bad(self, how, stress, found):
        name = " ".join([f"--track-fds={how}", *stress])
        closes = [e for e in found if "already closed" in e[0]]
        good = len(closes) == 2 and all(  # by close() and by close_range()
            re.match(r"File descriptor \d+: /dev/null is", e[0]) and
            e[3] == ["Previously closed", "Originally opened"] and e[1] >= 6 for e in closes)
        self.verdict(f"fds: one is closed twice, {name}", "" if good else f"{found}")
        uses = [re.search(r"Invalid file descriptor (-?\d+) in syscall (\w+)", e[0]) for e in found]
        uses = [(m[2], int(m[1])) for m in uses if m]
        expected = [("read", None), ("write", 77), ("close", 78), ("close", -1), ("read", -1),
                    ("openat", 79), ("dup2", 80)] if how != "yes" else [("close", -1)]
        same = len(uses) == len(expected) and all(
            u[0] == e[0] and e[1] in (None, u[1]) for u, e in zip(uses, expected))
        self.verdict(f"fds: wrong uses, {name}", "" if same else f"{uses}")

    def all(self):
        self.lists()
        self.processes()
        self.wrong_uses()
        self.sweeps()
