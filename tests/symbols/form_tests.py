# SPDX-License-Identifier: MIT
"""DWARF as compilers write it: in every version and layout, split, packaged and compressed."""

import shutil

from asking import (COMPILERS, add, addresses, ask, build, by_addr2line, by_llvm, check, need,
                    normal, plain_build, run, same_answers, symbols_of, test)
from suite import Skip


def against_oracle(folder, compiler, version):
    oracle = by_addr2line if compiler == "gcc" else by_llvm
    need(compiler, "addr2line" if compiler == "gcc" else "llvm-symbolizer")
    prog = plain_build(compiler, f"-gdwarf-{version}")
    questions = addresses(prog, 3)
    inlined = 0
    for question, ours, wanted in zip(questions, ask(prog, questions), oracle(prog, questions)):
        places = [normal(frame[1]) for frame in ours]
        check(places == [place for _, place in wanted],
              f"at {question} {places}, the oracle has {[p for _, p in wanted]}")
        inlined += len(ours) > 1
        # The other demanglers differ in spacing, and show clones and lambdas in other ways.
        if compiler == "gcc" and not any(".cold" in n or "hidden" in n for n, _ in wanted):
            names = [frame[0] for frame in ours]
            check(names == [n for n, _ in wanted], f"at {question} {names}, not {wanted}")
    check(inlined > 100, f"only {inlined} addresses have inlined frames")


for compiler_ in COMPILERS:
    for version_ in (2, 3, 4, 5):
        add(f"{compiler_}_dwarf_{version_}_is_read_as_the_oracle_reads_it",
            lambda folder, c=compiler_, v=version_: against_oracle(folder, c, v))


LAYOUTS = {
    "link_time_optimisation": ("gcc", ["-flto"], ["-flto", "-O2"]),
    "dropped_sections": ("gcc", ["-ffunction-sections"], ["-Wl,--gc-sections"]),
    "dropped_sections_of_lld": ("clang", ["-ffunction-sections"],
                                ["-fuse-ld=lld", "-Wl,--gc-sections"]),
    "type_units": ("gcc", ["-fdebug-types-section"], []),
    "64_bit_dwarf": ("gcc", ["-gdwarf64"], []),
    "line_tables_only": ("clang", ["-gmlt"], []),
    "a_fixed_address": ("gcc", ["-fno-pie"], ["-no-pie"]),
}


def layout(folder, compiler, flags, link):
    need(compiler, "llvm-symbolizer", *(["ld.lld"] if "-fuse-ld=lld" in link else []))
    prog = build(folder, compiler, "-g", *flags, link=link)
    questions = addresses(prog, 3)
    for question, ours, wanted in zip(questions, ask(prog, questions), by_llvm(prog, questions)):
        places = [normal(frame[1]) for frame in ours]
        # Where there is no line, llvm-symbolizer makes up a file from the symbol table.
        if places != ["?"]:
            check(places == [place for _, place in wanted],
                  f"at {question} {places}, the oracle has {[p for _, p in wanted]}")
    lines = sum(1 for answer in ask(prog, questions) if answer[0][1] != "?")
    check(lines > len(questions) * 0.8, f"{lines} of {len(questions)} addresses have a line")


for name_, build_ in LAYOUTS.items():
    add(f"{name_}_read_as_the_oracle_reads_them",
        lambda folder, b=build_: layout(folder, *b))


def split(folder, compiler, version):
    need(compiler)
    plain = plain_build(compiler, f"-gdwarf-{version}")
    prog = build(folder / "split", compiler, f"-gdwarf-{version}", "-gsplit-dwarf")
    check(list((folder / "split").glob("*.dwo")), "there is no .dwo")
    same_answers(plain, prog)
    # Moved together with their program: beside it they are found too.
    moved = folder / "moved"
    shutil.move(folder / "split", moved)
    same_answers(plain, moved / "prog")
    # Without them the symbol table and the lines are left.
    for dwo in moved.glob("*.dwo"):
        dwo.unlink()
    entry = symbols_of(moved / "prog")["c_entry"][0]
    answer = ask(moved / "prog", [f"{entry:x}"])[0]
    check(answer[0][0] == "c_entry" and "part.c:" in answer[0][1], f"without .dwo: {answer}")


def package(folder, compiler, version):
    if compiler == "gcc" and version == 5:
        raise Skip("no packer reads what gcc writes: binutils' knows DWARF 4, LLVM's hangs")
    packer = "dwp" if version == 4 else "llvm-dwp"
    need(compiler, packer)
    plain = plain_build(compiler, f"-gdwarf-{version}")
    prog = build(folder / "split", compiler, f"-gdwarf-{version}", "-gsplit-dwarf")
    run(packer, "-e", prog, "-o", f"{prog}.dwp")
    for dwo in (folder / "split").glob("*.dwo"):
        dwo.unlink()
    same_answers(plain, prog)
    # The package of another build has other ids.
    other = build(folder / "other", compiler, f"-gdwarf-{version}", "-gsplit-dwarf", "-DOTHER=1",
                  optimise="-O1")
    for dwo in (folder / "other").glob("*.dwo"):
        dwo.unlink()
    shutil.copy(f"{prog}.dwp", f"{other}.dwp")
    answers = ask(other, addresses(other))
    check(all(len(answer) == 1 for answer in answers), "inlined frames from a package of another build")


for compiler_ in COMPILERS:
    for version_ in (4, 5):
        add(f"{compiler_}_split_dwarf_{version_}_is_found_in_dwo_files",
            lambda folder, c=compiler_, v=version_: split(folder, c, v))
        add(f"{compiler_}_split_dwarf_{version_}_is_found_in_a_dwp_package",
            lambda folder, c=compiler_, v=version_: package(folder, c, v))


@test
def compressed_sections_are_read(folder):
    plain = plain_build("gcc", "-gdwarf-5")
    for kind in ("zlib", "zlib-gnu", "zstd"):
        packed = folder / f"prog-{kind}"
        done = run("objcopy", f"--compress-debug-sections={kind}", plain, packed, ok=False)
        if done.returncode:
            continue
        check(packed.stat().st_size < plain.stat().st_size, f"{kind} did not compress")
        same_answers(plain, packed)
