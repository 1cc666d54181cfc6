# SPDX-License-Identifier: MIT
"""Every option of core, memcheck and massif that the incumbent has: accepted with its meaning, accepted
without effect and with a reason, or refused with a sentence that says why.

The table below is the whole list. The test compares it with the installed manual's, and with what
`muninn --help-debug` says of each option, and gives each to the command."""
import glob
import re

# What an option does here:
#   MEANS    what the manual says
#   NOTHING  accepted, without effect, for the reason that --help-debug tells
#   REFUSED  refused, with a sentence
# and a value that it has there, which is not its default; None: it has none.
MEANS, NOTHING, REFUSED = "means", "nothing", "refused"
CORE = {
    "tool": (MEANS, "none"), "help": (MEANS, None), "help-debug": (MEANS, None),
    "help-dyn-options": (MEANS, None), "version": (MEANS, None), "quiet": (MEANS, None),
    "verbose": (MEANS, None), "trace-children": (MEANS, "yes"),
    "trace-children-skip": (MEANS, "*/x"), "trace-children-skip-by-arg": (MEANS, "x"),
    "child-silent-after-fork": (MEANS, "yes"), "vgdb": (MEANS, "no"),
    "vgdb-error": (REFUSED, "0"), "vgdb-stop-at": (REFUSED, "exit"),
    "track-fds": (MEANS, "all"), "modify-fds": (MEANS, "high"), "time-stamp": (MEANS, "yes"),
    "log-fd": (MEANS, "-1"), "log-file": (MEANS, "/dev/null"),
    "log-socket": (MEANS, "127.0.0.1:9"), "enable-debuginfod": (MEANS, "no"),
    "xml": (MEANS, "no"), "xml-fd": (MEANS, "2"), "xml-file": (MEANS, "/dev/null"),
    "xml-socket": (MEANS, "127.0.0.1:9"), "xml-user-comment": (MEANS, "x"),
    "demangle": (MEANS, "no"), "num-callers": (MEANS, "20"),
    "unw-stack-scan-thresh": (NOTHING, "5"), "unw-stack-scan-frames": (NOTHING, "5"),
    "error-limit": (MEANS, "no"), "error-exitcode": (MEANS, "9"),
    "exit-on-first-error": (MEANS, "no"), "error-markers": (MEANS, "a,b"),
    "show-error-list": (MEANS, "yes"), "sigill-diagnostics": (NOTHING, "no"),
    "keep-debuginfo": (MEANS, "yes"), "show-below-main": (MEANS, "yes"),
    "fullpath-after": (MEANS, "x"), "extra-debuginfo-path": (MEANS, "/"),
    "debuginfo-server": (REFUSED, "127.0.0.1:1500"),
    "allow-mismatched-debuginfo": (MEANS, "yes"), "default-suppressions": (NOTHING, "no"),
    "suppressions": (MEANS, "/dev/null"), "gen-suppressions": (MEANS, "all"),
    "input-fd": (MEANS, "0"), "dsymutil": (NOTHING, "no"), "max-stackframe": (NOTHING, "3000000"),
    "main-stacksize": (MEANS, "16m"), "max-threads": (NOTHING, "10"),
    "max-guard-pages": (NOTHING, "10"), "alignment": (MEANS, "64"), "redzone-size": (MEANS, "32"),
    "xtree-memory": (MEANS, "none"), "xtree-memory-file": (MEANS, "/dev/null"),
    "xtree-compress-strings": (MEANS, "no"), "realloc-zero-bytes-frees": (MEANS, "no"),
    "smc-check": (NOTHING, "all"), "read-inline-info": (MEANS, "no"),
    "read-var-info": (MEANS, "yes"), "vgdb-poll": (NOTHING, "100"),
    "vgdb-shadow-registers": (REFUSED, "yes"), "vgdb-prefix": (NOTHING, "/tmp/x"),
    "run-libc-freeres": (MEANS, "no"), "run-cxx-freeres": (MEANS, "no"),
    "sim-hints": (NOTHING, "lax-ioctls"), "scheduling-quantum": (NOTHING, "1000"),
    "fair-sched": (NOTHING, "yes"), "kernel-variant": (NOTHING, "bproc"),
    "merge-recursive-frames": (MEANS, "2"), "num-transtab-sectors": (NOTHING, "8"),
    "avg-transtab-entry-size": (NOTHING, "100"), "aspace-minaddr": (MEANS, "0x20000000"),
    "valgrind-stacksize": (NOTHING, "2000000"), "show-emwarns": (NOTHING, "yes"),
    "require-text-symbol": (MEANS, ":nothing*:x"), "soname-synonyms": (MEANS, "somalloc=nouserintercepts"),
    "progress-interval": (MEANS, "3600"), "command-line-only": (MEANS, "yes"),
    # Those that look into the incumbent.
    "stats": (MEANS, "yes"), "sanity-level": (NOTHING, "1"), "trace-flags": (REFUSED, "10000000"),
    "trace-notbelow": (NOTHING, "1"), "trace-notabove": (NOTHING, "1"),
    "profile-flags": (REFUSED, "10000000"), "profile-interval": (NOTHING, "1"),
    "dump-error": (REFUSED, "1"), "trace-syscalls": (MEANS, "no"), "trace-signals": (MEANS, "no"),
    "trace-symtab": (REFUSED, "yes"), "trace-symtab-patt": (NOTHING, "*"),
    "trace-cfi": (REFUSED, "yes"), "debug-dump": (REFUSED, "syms"), "trace-redir": (MEANS, "yes"),
    "trace-sched": (REFUSED, "yes"), "profile-heap": (REFUSED, "yes"),
    "core-redzone-size": (NOTHING, "8"), "wait-for-gdb": (REFUSED, "yes"),
    "sym-offsets": (MEANS, "yes"), "resync-filter": (NOTHING, "no"), "trace-malloc": (MEANS, "no"),
    "px-default": (NOTHING, "allregs"), "px-file-backed": (NOTHING, "allregs"),
    "vex-iropt-register-updates": (NOTHING, "allregs"), "vex-iropt-verbosity": (NOTHING, "1"),
    "vex-iropt-level": (NOTHING, "1"), "vex-iropt-unroll-thresh": (NOTHING, "1"),
    "vex-iropt-precise-memory-exns": (NOTHING, "yes"), "vex-guest-max-insns": (NOTHING, "9"),
    "vex-guest-chase": (NOTHING, "no"), "vex-guest-chase-thresh": (NOTHING, "1"),
    "vex-guest-chase-cond": (NOTHING, "yes"), "vex-regalloc-version": (NOTHING, "2"),
}
MEMCHECK = {
    "leak-check": (MEANS, "full"), "leak-resolution": (MEANS, "low"),
    "show-leak-kinds": (MEANS, "all"), "errors-for-leak-kinds": (MEANS, "none"),
    "leak-check-heuristics": (MEANS, "none"), "show-reachable": (MEANS, "yes"),
    "show-possibly-lost": (MEANS, "no"), "xtree-leak": (MEANS, "no"),
    "xtree-leak-file": (MEANS, "/dev/null"), "undef-value-errors": (MEANS, "no"),
    "track-origins": (MEANS, "no"), "partial-loads-ok": (MEANS, "no"),
    "expensive-definedness-checks": (NOTHING, "yes"), "keep-stacktraces": (MEANS, "none"),
    "freelist-vol": (MEANS, "1000"), "freelist-big-blocks": (MEANS, "1000"),
    "workaround-gcc296-bugs": (MEANS, "yes"), "ignore-range-below-sp": (MEANS, "8192-8189"),
    "show-mismatched-frees": (MEANS, "no"), "show-realloc-size-zero": (MEANS, "no"),
    "ignore-ranges": (MEANS, "0x10-0x20"), "malloc-fill": (MEANS, "aa"), "free-fill": (MEANS, "aa"),
}
MASSIF = {
    "heap": (MEANS, "no"), "heap-admin": (MEANS, "16"), "stacks": (MEANS, "yes"),
    "pages-as-heap": (MEANS, "yes"), "depth": (MEANS, "5"), "alloc-fn": (MEANS, "x"),
    "ignore-fn": (MEANS, "x"), "threshold": (MEANS, "2.0"), "peak-inaccuracy": (MEANS, "0.0"),
    "time-unit": (MEANS, "B"), "detailed-freq": (MEANS, "1"), "max-snapshots": (MEANS, "20"),
    "massif-out-file": (MEANS, "/dev/null"),
}
# Only these reasons may refuse an option: gdb's protocol, a debuginfo server's, and what debugs the
# incumbent's own parts.
MAY_BE_REFUSED = {
    "vgdb-error", "vgdb-stop-at", "vgdb-shadow-registers", "wait-for-gdb", "debuginfo-server",
    "trace-flags", "profile-flags", "dump-error", "trace-symtab", "trace-cfi", "trace-sched",
    "profile-heap", "debug-dump",
}
# Of the manual: other programs' options, and what its text quotes.
OTHERS = {"exit-at-zero", "max-connect", "x", "y"}
MANUAL = "/usr/share/doc/valgrind/html/*.html"


def groups(text):
    """{option: "means", "nothing" or "refused"} of --help-debug."""
    found, kind = {}, MEANS
    for line in text.splitlines():
        if re.match(r"[A-Z].*:$", line):
            kind = {"Accepted without effect:": NOTHING, "Refused:": REFUSED}.get(line, MEANS)
        for name in re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", line):
            found[name] = kind
    return found


def in_manual():
    names = set()
    for chapter in ("manual-core", "mc-manual", "ms-manual"):
        for path in glob.glob(MANUAL.replace("*", chapter)):
            with open(path, encoding="utf-8", errors="replace") as page:
                html = page.read()
            for term in re.findall(r'<span class="term">(.*?)</span>\s*</dt>', html, re.S):
                names |= set(re.findall(r"(?<![\w-])--([a-z0-9-]+)", re.sub(r"<[^>]*>", "", term)))
    return names - OTHERS


def check_table(help_of):
    """`help_of(tool)` is the text of --help-debug. Raises AssertionError."""
    everything = {**CORE, **MEMCHECK, **MASSIF}
    missing = in_manual() - set(everything)
    assert not missing, f"the manual has options that this table lacks: {sorted(missing)}"
    for tool, table in (("memcheck", {**CORE, **MEMCHECK}), ("massif", {**CORE, **MASSIF})):
        there = groups(help_of(tool))
        for name, (kind, _) in table.items():
            assert there.get(name) == kind, f"--{name}: wanted {kind}, --help-debug says {there.get(name)}"
    refused = {name for name, (kind, _) in everything.items() if kind == REFUSED}
    assert refused <= MAY_BE_REFUSED, f"must not be refused: {sorted(refused - MAY_BE_REFUSED)}"


def check_values(run):
    """`run(words)` gives (status, text of standard error) of a run of a trivial program."""
    for tool, table in (("memcheck", {**CORE, **MEMCHECK}), ("massif", MASSIF)):
        for name, (kind, value) in table.items():
            if value is None or name == "tool":
                continue
            status, text = run([f"--tool={tool}", f"--{name}={value}"])
            if kind == REFUSED:
                assert status != 0 and re.search(rf"--{name}={value}: \w.+ \w", text), \
                    f"--{name}={value} is not refused with a sentence: {status} {text}"
            else:
                assert status == 0, f"--{name}={value}: status {status}: {text}"
