// SPDX-License-Identifier: MIT
//
// howvec: the mix of the instructions that a program executes, by class and by extension of the
// instruction set. Shows a tool in C++, and many counters that cost no more than one.
#include <muninn/tool.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

MUNINN_TOOL("howvec", "counts executed instructions by class, extension or mnemonic")

static std::map<std::string, MuninnCounter> by_class, by_extension, by_mnemonic;
static bool shows_mnemonics = false;

static const char *class_name(MuninnClass c)
{
    switch (c) {
    case MUNINN_CLASS_BRANCH: return "conditional branch";
    case MUNINN_CLASS_JUMP: return "jump";
    case MUNINN_CLASS_JUMP_INDIRECT: return "indirect jump";
    case MUNINN_CLASS_CALL: return "call";
    case MUNINN_CLASS_CALL_INDIRECT: return "indirect call";
    case MUNINN_CLASS_RETURN: return "return";
    case MUNINN_CLASS_SYSCALL: return "system call";
    case MUNINN_CLASS_OTHER: break;
    }
    return nullptr;
}

static std::string class_of(MuninnInsn *insn)
{
    MuninnAccess accesses[MUNINN_ACCESSES_MAX];
    bool reads = false, writes = false;
    if (const char *name = class_name(muninn_insn_class(insn)))
        return name;
    size_t count = muninn_insn_accesses(insn, accesses, MUNINN_ACCESSES_MAX);
    for (size_t i = 0; i < count; i++) {
        reads |= accesses[i].reads;
        writes |= accesses[i].writes;
    }
    return reads && writes ? "reads and writes memory"
           : writes        ? "writes memory"
           : reads         ? "reads memory"
                           : "registers only";
}

static void count(std::map<std::string, MuninnCounter> &counters, const std::string &name,
                  MuninnInsn *insn)
{
    auto found = counters.find(name);
    if (found == counters.end())
        found = counters.emplace(name, muninn_counter()).first;
    muninn_count(insn, found->second, 1);
}

static void on_block(MuninnBlock *block, void *)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        count(by_class, class_of(insn), insn);
        count(by_extension, muninn_insn_extension(insn), insn);
        if (shows_mnemonics)
            count(by_mnemonic, muninn_insn_mnemonic(insn), insn);
    }
}

static void print(const char *title, const std::map<std::string, MuninnCounter> &counters)
{
    std::vector<std::pair<uint64_t, std::string>> rows;
    uint64_t sum = 0;
    for (const auto &[name, counter] : counters) {
        uint64_t total = muninn_counter_total(counter);
        if (total)
            rows.emplace_back(total, name);
        sum += total;
    }
    std::sort(rows.rbegin(), rows.rend());
    muninn_log("%14lu  100.0 %%  all, by %s", sum, title);
    for (const auto &[total, name] : rows)
        muninn_log("%14lu  %5.1f %%  %s", total, 100.0 * double(total) / double(sum),
                   name.c_str());
}

static void on_end(void *)
{
    print("class", by_class);
    print("extension", by_extension);
    if (shows_mnemonics)
        print("mnemonic", by_mnemonic);
}

int muninn_tool_start(void)
{
    muninn_option_bool("mnemonics", &shows_mnemonics, "Count each mnemonic too.");
    muninn_on_block(on_block, nullptr);
    muninn_on_end(on_end, nullptr);
    return 0;
}
