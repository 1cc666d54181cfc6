# SPDX-License-Identifier: MIT
"""The table of docs/design/hunts.md: what the last full run of each hunt found."""
import re
import hunting

PAGE = hunting.ROOT / "docs/design/hunts.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
HEAD = ("| hunt | commit | seed | trials | duration | outcome |\n|---|---|---|---|---|---|\n")


def duration(seconds):
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else \
        f"{minutes} min {seconds % 60:.0f} s"


def outcome(kept):
    failed = kept["failed"]
    if not failed:
        text = "no finding"
    else:
        shown = "; ".join(f"trial {n}: {text}" for n, text in sorted(failed.items())[:5])
        text = f"{len(failed)} findings: " + shown.replace("|", "\\|")
    return text + (f"; {kept['skipped']} skipped" if kept["skipped"] else "")


def row(hunt, kept, options):
    trials = f"{len(kept['done']):,} of {hunt.full:,}"
    if options.target_seconds and hunt.name in ("fuzz", "soak"):
        trials += f", {options.target_seconds:.0f} s each"
    return (f"| `{hunt.name}` | {kept['commit']} | {kept['seed']} | {trials} | "
            f"{duration(kept['seconds'])} | {outcome(kept)} |\n")


def write(hunt, kept, options):
    """Puts the row of this hunt into the page, in place of its last one."""
    text = PAGE.read_text()
    before, table, after = re.split(f"{BEGIN}\n|{END}", text)
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `(\w+)` .*\n", table, re.M)}
    rows[hunt.name] = row(hunt, kept, options)
    table = HEAD + "".join(rows[name] for name in sorted(rows))
    PAGE.write_text(f"{before}{BEGIN}\n{table}{END}{after}")
    if options.verbose:
        print(f"# written into {PAGE}")
