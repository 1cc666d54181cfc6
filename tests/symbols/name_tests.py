# SPDX-License-Identifier: MIT
"""Names of functions, as people know them."""

import re

from asking import add, addresses, ask, check, need, plain_build, run, symbols_of, test
from suite import Skip


@test
def names_are_demangled_and_trimmed(folder):
    cases = {
        "_ZN3zoo4CageIiLi4EED1Ev": "zoo::Cage<int, 4>::~Cage()",
        "_ZN3zoo4feedERKi.cold": "zoo::feed(int const&)",
        "_ZN3zoo4feedERKi.llvm.123456789": "zoo::feed(int const&)",
        "_ZN3zoo4feedERKi@plt": "zoo::feed(int const&)@plt",
        "work.constprop.0": "work",
        "work.isra.0.part.1.cold": "work",
        "work.lto_priv.0": "work",
        "work.part.0.constprop.3": "work",
        "main": "main",
        "puts@@GLIBC_2.2.5": "puts@@GLIBC_2.2.5",
        "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE": "core::fmt::Write::write_fmt",
        "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.77": "core::fmt::Write::write_fmt",
        "_RNvCs1234_7mycrate3foo": "mycrate::foo",
        "_RNvCs1234_7mycrate3foo.llvm.1234": "mycrate::foo",
        "_D3std5stdio7writelnFZv": "std.stdio.writeln()",
        "_D3std5stdio7writelnFAyaZv": "std.stdio.writeln(immutable(char)[])",
        "_Z": "_Z",
        "_R": "_R",
        "_D": "_D",
        "_ZN": "_ZN",
        "a.b.c": "a.b.c",
    }
    prog = plain_build("gcc", "-gdwarf-5")
    answers = ask(prog, [f"n {name}" for name in cases])
    for (name, wanted), answer in zip(cases.items(), answers):
        check(answer[0][0] == wanted, f"{name}: {answer[0][0]}, not {wanted}")
    raw = ask(prog, [f"n {name}" for name in cases], "--no-demangle")
    check([a[0][0] for a in raw] == list(cases), "--demangle=no changes names")


def rust(folder, mangling):
    need("rustc")
    source = folder / "prog.rs"
    folder.mkdir(exist_ok=True)
    source.write_text("""
mod animals {
    pub trait Speak { fn speak(&self, times: usize) -> usize; }
    pub struct Dog<T> { pub age: T }
    impl<T: Into<u64> + Copy> Speak for Dog<T> {
        #[inline(never)]
        fn speak(&self, times: usize) -> usize { times * self.age.into() as usize }
    }
}
use animals::Speak;
#[inline(never)]
fn closure_user(n: u64) -> u64 { (0..n).map(|x| x.wrapping_mul(std::process::id() as u64)).sum() }
fn main() {
    let dog = animals::Dog { age: 3u32 };
    println!("{} {}", dog.speak(2), closure_user(dog.speak(9) as u64));
}
""")
    done = run("rustc", "-g", "-O", "-Zunstable-options", "-C", f"symbol-mangling-version={mangling}", source, "-o",
               folder / "prog", ok=False, RUSTC_BOOTSTRAP="1")
    if done.returncode:
        raise Skip(f"rustc does not take it: {done.stderr[:200]}")
    found = {name: place for name, place in symbols_of(folder / "prog").items()
             if re.search(r"closure_user|speak", name)}
    check(found, "no symbol of ours is left")
    prefix = "_R" if mangling == "v0" else "_ZN"
    check(all(name.startswith(prefix) for name in found), f"{found} is not {mangling}")
    for name, (address, _) in found.items():
        frames = ask(folder / "prog", [f"{address:x}"])[0]
        shown = frames[-1][0]
        check("closure_user" in shown or "speak" in shown, f"{name} is shown as {shown}")
        check(not re.search(r"h[0-9a-f]{16}|_R|_ZN|\[[0-9a-f]{8,}\]", shown), f"shown: {shown}")
        check("prog.rs:" in frames[-1][1], f"{name} is at {frames[-1][1]}")


for mangling_ in ("legacy", "v0"):
    add(f"rust_with_{mangling_}_mangling_is_readable",
        lambda folder, m=mangling_: rust(folder, m))


@test
def d_names_are_readable(folder):
    need("gdc")
    source = folder / "prog.d"
    source.write_text("module zoo;\nimport core.stdc.stdio;\nclass Cage { int n;\n"
                      "  int count(int by) { return n * by + cast(int) n; } }\n"
                      "void main() { auto c = new Cage; printf(\"%d\\n\", c.count(2)); }\n")
    run("gdc", "-g", source, "-o", folder / "prog")
    name, (address, _) = next((n, p) for n, p in symbols_of(folder / "prog").items()
                              if n.endswith("5countMFiZi"))
    answer = ask(folder / "prog", [f"{address:x}"])[0][0]
    check(answer[0] == "zoo.Cage.count(int)" and "prog.d:4" in answer[1], f"{name}: {answer}")


@test
def inlined_frames_can_be_turned_off(folder):
    prog = plain_build("gcc", "-gdwarf-5")
    questions = addresses(prog)
    for with_, without in zip(ask(prog, questions), ask(prog, questions, "--no-inline")):
        check(len(without) == 1 and without[0][0] == with_[-1][0], f"{without}, with: {with_}")
        check(without[0][1] == with_[0][1], f"the line of {without} is not that of {with_[0]}")


@test
def of_several_names_people_know_one_is_shown(folder):
    source = folder / "alias.c"
    source.write_text("int _IO_work(int x) { return x; }\n"
                      "extern int work(int) __attribute__((weak, alias(\"_IO_work\")));\n"
                      "extern int __libc_work(int) __attribute__((alias(\"_IO_work\")));\n"
                      "extern int cwork(int) __attribute__((alias(\"_IO_work\")));\n"
                      "__asm__(\".symver cwork, cwork@OLD_1\");\n")
    (folder / "map").write_text("OLD_1 { };\nNEW_2 { global: *; } OLD_1;\n")
    run("gcc", "-shared", "-fPIC", source, f"-Wl,--version-script={folder}/map", "-o",
        folder / "alias.so")
    address = f"{symbols_of(folder / 'alias.so')['_IO_work'][0]:x}"
    for _ in range(2):
        shown = ask(folder / "alias.so", [address])[0][0][0]
        check(shown == "work", f"{shown} is shown")
        run("strip", folder / "alias.so")


@test
def inlined_functions_have_whole_and_plain_names(folder):
    prog = plain_build("gcc", "-gdwarf-5")
    start, size = next(place for name, place in symbols_of(prog).items()
                       if name.startswith("_ZNK3zoo4CageIiLi4EE3sum"))
    frames = [frame for answer in ask(prog, [f"{a:x}" for a in range(start, start + size)])
              for frame in answer if len(frame) == 5]
    check(["int twice<int>(int)", "inlined twice<int>"] in [[f[0], f[4]] for f in frames],
          f"no twice<int> among {frames[:5]}")


@test
def nested_functions_and_return_addresses(folder):
    source = folder / "nested.c"
    source.write_text("#include <stdlib.h>\n"
                      "int outer(int n)\n{\n"
                      "    int __attribute__((noinline)) inner(int k) { return k + n; }\n"
                      "    return inner(3) * 2;\n}\n"
                      "void __attribute__((noinline, noreturn)) last(void)\n{\n"
                      "    abort();\n}\n"
                      "int main(void)\n{\n    if (outer(1))\n        last();\n    return 0;\n}\n")
    run("gcc", "-g", "-O1", source, "-o", folder / "nested")
    symbols = symbols_of(folder / "nested")
    inner = next(v for k, v in symbols.items() if k.startswith("inner"))[0]
    answer = ask(folder / "nested", [f"{inner:x}"])[0]
    check(answer[0][0].startswith("inner") and "nested.c:4" in answer[0][1], f"{answer}")
    # The call of abort() is the last instruction of its function: the return address behind it is
    # in the next function, one byte back is the call.
    start, size = symbols["last"]
    end = f"{start + size:x}"
    answer = ask(folder / "nested", [f"r {end}"])[0]
    check(answer[0][0] == "last" and "nested.c:9" in answer[0][1], f"return address: {answer}")
