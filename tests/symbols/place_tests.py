# SPDX-License-Identifier: MIT
"""Debug info that lies elsewhere: by link, by build id, in dwz files, on a server, or nowhere."""

import http.server
import os
import re
import shutil
import threading
from pathlib import Path

from asking import ask, build, check, need, plain_build, run, same_answers, symbols_of, test
from suite import Skip


def strip_to(folder, plain, name="stripped"):
    """A stripped copy in a folder of its own, and the debug info beside the plain file."""
    stripped = folder / name / "prog"
    stripped.parent.mkdir()
    debug = folder / "prog.debug"
    run("objcopy", "--only-keep-debug", plain, debug)
    run("strip", "-o", stripped, plain)
    return stripped, debug


def build_id(file):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", file).stdout)[1]


@test
def debuglink_is_followed_with_its_checksum(folder):
    plain = build(folder, "gcc", "-g", link=["-Wl,--build-id=none"])
    stripped, debug = strip_to(folder, plain)
    run("objcopy", f"--add-gnu-debuglink={debug}", stripped)
    (stripped.parent / ".debug").mkdir()
    shutil.copy(debug, stripped.parent / ".debug" / "prog.debug")
    same_answers(plain, stripped)
    # A file of that name from another build is not used, unless the user insists.
    with open(stripped.parent / ".debug" / "prog.debug", "ab") as file:
        file.write(b"changed")
    entry = f"{symbols_of(plain)['c_entry'][0]:x}"
    check(ask(stripped, [entry])[0][0][1] == "?", "a mismatched file was used")
    same_answers(plain, stripped, "--allow-mismatched")


@test
def build_id_folders_are_searched(folder):
    plain = plain_build("gcc", "-gdwarf-5")
    stripped, debug = strip_to(folder, plain)
    number = build_id(plain)
    place = folder / "extra" / ".build-id" / number[:2]
    place.mkdir(parents=True)
    shutil.copy(debug, place / f"{number[2:]}.debug")
    entry = f"{symbols_of(plain)['c_entry'][0]:x}"
    check(ask(stripped, [entry])[0][0][:2] == ["?", "?"], "found without being told where")
    same_answers(plain, stripped, f"--extra={folder}/extra")
    # A file under the right name that is not the right one.
    other = plain_build("clang" if shutil.which("clang") else "gcc", "-gdwarf-4")
    shutil.copy(other, place / f"{number[2:]}.debug")
    answer = ask(stripped, [entry], f"--extra={folder}/extra")
    check(answer[0][0][:2] == ["?", "?"], f"a file with another build id was used: {answer}")


@test
def the_system_build_id_folder_is_searched(folder):
    if not os.access("/usr/lib", os.W_OK):
        raise Skip("/usr/lib cannot be written to")
    plain = build(folder, "gcc", "-g", f"-DUNIQUE_{os.getpid()}")
    stripped, debug = strip_to(folder, plain)
    run("objcopy", "--strip-debug", plain, folder / "no-debug")
    number = build_id(plain)
    place = Path("/usr/lib/debug/.build-id") / number[:2]
    target = place / f"{number[2:]}.debug"
    created = not place.exists()
    if target.exists():
        raise Skip("there is such a file")
    place.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copy(debug, target)
        same_answers(plain, stripped)
    finally:
        target.unlink()
        if created:
            place.rmdir()


@test
def dwz_files_are_read(folder):
    need("dwz")
    plain = plain_build("gcc", "-gdwarf-5")
    single = folder / "single"
    shutil.copy(plain, single)
    run("dwz", single)
    same_answers(plain, single)
    # What several files share moves into a common file.
    one, two = folder / "one", folder / "two"
    shutil.copy(plain, one)
    shutil.copy(build(folder / "b", "gcc", "-gdwarf-5", "-DOTHER"), two)
    run("dwz", "-m", folder / "common", "-r", one, two, cwd=folder)
    check((folder / "common").exists(), "dwz made no common file")
    same_answers(plain, one)
    (folder / "extra").mkdir()
    shutil.move(folder / "common", folder / "extra" / "common")
    same_answers(plain, one, f"--extra={folder}/extra")


@test
def mini_debug_info_names_static_functions(folder):
    need("xz")
    plain = plain_build("gcc", "-gdwarf-5")
    run("objcopy", "--strip-debug", plain, folder / "mini")
    run("xz", "-k", folder / "mini")
    stripped = folder / "stripped"
    run("strip", "-o", stripped, plain)
    run("objcopy", "--add-section", f".gnu_debugdata={folder}/mini.xz", stripped)
    same_answers(plain, stripped, names_only=True)


@test
def stripped_files_have_dynamic_and_plt_names(folder):
    plain = build(folder, "gcc", "-g0", link=["-rdynamic"])
    run("strip", plain)
    listing = run("objdump", "-d", "--no-show-raw-insn", plain).stdout
    stubs = re.findall(r"^([0-9a-f]{16}) <([^>]+@plt)>:", listing, flags=re.M)
    check(len(stubs) > 5, "objdump finds no stubs")
    for (address, name), answer in zip(stubs, ask(plain, [a for a, _ in stubs])):
        demangled = run("c++filt", name[:-4]).stdout.strip() + "@plt"
        check(answer[0][0] == demangled, f"{address}: {answer}, objdump says {demangled}")
    dynamic = run("nm", "-D", "--defined-only", plain).stdout
    entry = re.search(r"([0-9a-f]+) T c_entry", dynamic)[1]
    check(ask(plain, [entry])[0][0][0] == "c_entry", "c_entry is not found in dynsym")
    # Not even section headers: program headers lead to the same names.
    with open(plain, "r+b") as file:
        file.seek(40)
        file.write(bytes(8))  # e_shoff
        file.seek(60)
        file.write(bytes(4))  # e_shnum, e_shstrndx
    check(ask(plain, [entry])[0][0][0] == "c_entry", "c_entry is not found without sections")


@test
def a_debuginfod_server_is_asked_only_when_told_to(folder):
    plain = plain_build("gcc", "-gdwarf-5")
    stripped, debug = strip_to(folder, plain)
    number, hits = build_id(plain), []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hits.append(self.path)
            self.send_response(200 if number in self.path else 404)
            self.end_headers()
            if number in self.path:
                self.wfile.write(debug.read_bytes())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        os.environ["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{server.server_port}"
        os.environ["DEBUGINFOD_CACHE_PATH"] = str(folder / "cache")
        entry = f"{symbols_of(plain)['c_entry'][0]:x}"
        check(ask(stripped, [entry])[0][0][1] == "?" and not hits, f"asked unasked: {hits}")
        warnings = []
        answer = ask(stripped, [entry], "--debuginfod", ret_stderr=warnings)
        if "libdebuginfod" in warnings[0]:
            check(warnings[0].count("\n") == 1, f"more than one line: {warnings[0]}")
            raise Skip("libdebuginfod.so.1 is not installed; it was said in one line")
        check(hits == [f"/buildid/{number}/debuginfo"], f"the server saw {hits}")
        check("part.c:" in answer[0][0][1], f"{answer}")
    finally:
        server.shutdown()
        del os.environ["DEBUGINFOD_URLS"], os.environ["DEBUGINFOD_CACHE_PATH"]
