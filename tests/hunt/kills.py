# SPDX-License-Identifier: MIT
"""Hunt: kill -9 of any of the processes at a random moment.

The processes are the client, its monitor, the monitor's reader of symbols, and a subcommand that
looks at the run. Whichever dies, the others end; the report has everything up to the last finding,
or a line says what is missing; nothing is left behind: no process, no zombie, no socket, no
unfinished file.
"""
import json
import os
import re
import signal
import subprocess
import time

from hunting import (HERE, Found, Hunt, descendants, describe_tree, read_bytes, reap, wait_for)

OWN_STATUS = 7  # what the program ends with by itself
LOST_STATUS = 42  # --error-exitcode, in half of the trials
REFUSED_STATUS = 126  # the program was not begun
NAMES = {"monitor": "muninn-monitor", "reader": "muninn-symbols"}
SUBCOMMANDS = (("top",), ("ps",), ("heap", "summary", "{recording}"), ("view", "{recording}"),
               ("heap", "tree", "{recording}"), ("ctl", "{pid}", "heap"))


def client(options):
    return os.path.join(options.build, "hunt", "kills_client")


def prepare(options):
    subprocess.run(["gcc", "-std=gnu17", "-g", "-O1", "-Wall", "-Werror", "-o", client(options),
                    HERE / "kills_client.c", "-lpthread"], check=True)


class Scene:
    """One run and what is to be killed in it."""

    def __init__(self, trial):
        self.trial, chance = trial, trial.random
        self.tool = chance.choice(("memcheck", "memcheck", "massif"))
        victims = ["client", "monitor", "reader", "inspect"]
        self.victim = chance.choice(victims)
        self.moment = chance.choice(("start", "middle", "end"))
        self.delay_s = chance.uniform(0, {"start": 0.6, "middle": 0.3, "end": 0.06}[self.moment])
        self.lines = chance.randrange(1, 120)
        self.asks_code = chance.random() < 0.5
        self.kind = chance.choice(("f", "fo", "o", "f"))
        self.subcommand = chance.choice(SUBCOMMANDS)
        self.output, self.inspector, self.hit = b"", None, False

    def options(self):
        where = self.trial.folder
        options = [f"--tool={self.tool}", f"--log-file={where}/log.%p"]
        if self.tool == "memcheck":
            options += [f"--json-file={where}/json.%p", "--error-limit=no", "--leak-check=full"]
            if self.asks_code:
                options += [f"--error-exitcode={LOST_STATUS}"]
        else:
            options += [f"--massif-out-file={where}/massif.out.%p",
                        f"--recording-file={where}/recording.%p"]
        return options

    def environment(self):
        where = str(self.trial.folder)
        return {"XDG_RUNTIME_DIR": where, "TMPDIR": where, "BROWSER": "true"}

    def find(self, what):
        """The pid to kill, or None while there is no such process."""
        if what == "client":
            return self.process.pid
        if what == "inspect":
            return self.inspector.pid if self.inspector else None
        found = [pid for pid, (_, state, name) in descendants(os.getpid()).items()
                 if name == NAMES[what] and state != "Z"]
        return self.trial.random.choice(sorted(found)) if found else None

    def read_line(self):
        line = self.process.stdout.readline()
        self.output += line
        return line

    def start(self):
        self.process = self.trial.start(
            [self.trial.muninn, *self.options(), client(self.trial.options), self.kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(self.trial.path("err"), "wb"), environment=self.environment())
        if self.moment != "start" or self.victim == "inspect":
            for _ in range(self.lines):
                if not self.read_line():
                    break
        if self.victim == "inspect":
            self.start_inspector()
        if self.moment == "end":
            self.process.stdin.close()

    def start_inspector(self):
        where, pid = self.trial.folder, self.process.pid
        words = [w.format(recording=f"{where}/recording.{pid}", pid=pid) for w in self.subcommand]
        self.inspector = self.trial.start([self.trial.muninn, *words],
                                          environment=self.environment())

    def kill(self):
        end = time.monotonic() + self.delay_s
        while time.monotonic() < end:
            time.sleep(0.002)
        pid = self.find(self.victim)
        if pid is None and self.victim == "reader" and self.moment == "start":
            pid = self.find("monitor")
            self.victim = "monitor"
        if pid is None:
            return
        self.trial.say(f"kill -9 of {self.victim} {pid}")
        try:
            self.hit = self.process.poll() is None or pid != self.process.pid
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self.hit = False

    def finish(self):
        """The client is let go, and everybody ends."""
        if self.inspector:
            if self.hit:
                self.inspector.wait()
            else:
                self.inspector.kill()
                self.inspector.wait()
        if self.moment != "end":
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        self.output += self.process.stdout.read()
        self.process.stdout.close()
        try:
            self.status = self.process.wait(timeout=600)
        except subprocess.TimeoutExpired:
            raise Found(f"the client does not end after {self.victim} was killed\n"
                        + describe_tree(os.getpid())) from None
        wait_for(self.nobody_left, "the end of all processes")

    def nobody_left(self):
        reap()
        return not descendants(os.getpid())


# ------------------------------------------------------------- what must hold

def text_of(scene, prefix):
    """The text of this client's own file; children have others."""
    return read_bytes(scene.trial.path(f"{prefix}.{scene.process.pid}")).decode(errors="replace")


def expect(truth, text):
    if not truth:
        raise Found(text)


def check_status(scene):
    if scene.victim == "client" and scene.hit:
        expect(scene.status in (-signal.SIGKILL, OWN_STATUS, LOST_STATUS),
               f"the client was killed and its status is {scene.status}")
    elif scene.victim == "monitor" and scene.status == REFUSED_STATUS:
        expect(not scene.output, "the monitor was killed, and the program was refused while it ran")
        expect(said_of_loss(scene), "the program was refused without a word")
    else:
        wanted = (OWN_STATUS, LOST_STATUS) if scene.asks_code else (OWN_STATUS,)
        expect(scene.status in wanted,
               f"{scene.victim} was killed, and the client's status is {scene.status}")


def said_of_loss(scene):
    everything = text_of(scene, "log") + read_bytes(scene.trial.path("err")).decode()
    return re.search(r"the monitor has gone|nothing (more )?is reported|cannot|is not run", everything)


def numbers(scene):
    return [int(line) for line in scene.output.split(b"\n")[:-1]]


def check_memcheck(scene):
    log = text_of(scene, "log")
    if scene.victim == "monitor" and scene.hit:
        expect("ERROR SUMMARY" in log or said_of_loss(scene),
               "the monitor was killed, and neither a summary nor a line about it is there")
    elif scene.output or scene.victim != "client":
        expect("ERROR SUMMARY" in log, "there is no summary in the log")
        expect("HEAP SUMMARY" in log or scene.victim == "client", "there is no heap summary")
        made = len(numbers(scene)) if "f" in scene.kind else 0
        told = re.findall(r"ERROR SUMMARY: ([\d,]+) errors", log)
        told = told[-1].replace(",", "") if told else "0"
        expect(int(told) >= made,
               f"{made} findings were made before the end, {told} are in the log")
    for file in scene.trial.folder.glob("json.*"):
        check_json(scene, file)


def check_json(scene, file):
    try:
        document = json.loads(file.read_text())
    except ValueError as error:
        raise Found(f"{file.name} is no JSON: {error}") from None
    whole = document["status"] == "finished"
    expect(whole or scene.victim == "monitor", f"{file.name} says status {document['status']}")


def check_massif(scene):
    lost = scene.victim == "monitor" and scene.hit
    massif = scene.trial.path(f"massif.out.{scene.process.pid}")
    recording = scene.trial.path(f"recording.{scene.process.pid}")
    began = bool(scene.output)
    if lost:
        expect(massif.exists() or said_of_loss(scene), "neither massif.out nor a line about it")
    elif began:
        expect(massif.exists(), "there is no massif.out")
        expect(recording.exists(), "there is no recording")
    if massif.exists():
        status, out, err = scene.trial.run([scene.trial.muninn, "ms_print", massif])
        expect(status == 0, f"massif.out cannot be read: {err.decode()[:300]}")
    if recording.exists() and recording.stat().st_size:
        status, out, err = scene.trial.run([scene.trial.muninn, "heap", "summary", recording],
                                           environment=scene.environment())
        expect(status == 0, f"the recording cannot be read: {err.decode()[:300]}")


def start_another_view(scene):
    """The page that leads a browser to a server which was killed is removed by the next server."""
    view = scene.trial.start([scene.trial.muninn, "view", f"{scene.trial.folder}/log.1",
                              f"{scene.trial.folder}/recording.{scene.process.pid}"],
                             environment=scene.environment(), stdout=subprocess.PIPE)
    view.stdout.readline()
    view.terminate()
    view.wait()
    view.stdout.close()


def check_nothing_left(scene):
    if list(scene.trial.folder.glob("muninn-view-*")):
        start_another_view(scene)
    status, out, err = scene.trial.run([scene.trial.muninn, "ps"], environment=scene.environment())
    sockets = list(scene.trial.path("muninn").glob("*"))
    expect(not sockets, f"a socket is left though `muninn ps` was asked: {sockets}")
    known = re.compile(r"(log|json|massif\.out|recording)\.\d+|err|muninn|commands|found")
    others = [p.name for p in scene.trial.folder.iterdir() if not known.fullmatch(p.name)]
    expect(not others, f"files are left: {others}")


def trial(trial):
    scene = Scene(trial)
    scene.start()
    scene.kill()
    scene.finish()
    try:
        check_status(scene)
        (check_memcheck if scene.tool == "memcheck" else check_massif)(scene)
        check_nothing_left(scene)
    except Found as found:
        when = f"{scene.moment} + {scene.delay_s:.3f} s" + ("" if scene.hit else ", too late")
        raise Found(f"{found} [{scene.tool}, {scene.victim} killed, {when}, status {scene.status}]"
                    ) from None
    return f"{scene.tool}, {scene.victim}, {scene.moment}" + ("" if scene.hit else ", too late")


HUNT = Hunt("kills", "kill -9 of any process at a random moment", trial, full=1000, sample=6,
            prepare=prepare, timeout_s=1800)
