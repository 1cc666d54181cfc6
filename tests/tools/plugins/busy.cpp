// SPDX-License-Identifier: MIT
//
// A tool in C++ that does in callbacks what C++ does: containers, exceptions, locks, vectors of
// floating point numbers.
#include <muninn/tool.h>

#include <cmath>
#include <ctime>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

MUNINN_TOOL("busy", "uses C++ in callbacks")

static std::mutex lock;
static std::map<std::string, uint64_t> seen;
static uint64_t caught;
static double sum;

struct Odd : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void check(uint64_t n)
{
    std::vector<double> values(64, double(n % 100));
    for (double &v : values)
        v = std::sqrt(v * v);
    sum += values[n % 64];
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (n % 1000 == 999)
        throw Odd("it is odd");
}

static void on_call(MuninnThread *thread, void *, uint64_t)
{
    std::lock_guard<std::mutex> guard(lock);
    uint64_t &n = seen["thread " + std::to_string(muninn_thread_number(thread) % 8)];
    try {
        check(n++);
    } catch (const Odd &) {
        caught++;
    }
}

static void on_block(MuninnBlock *block, void *)
{
    std::string text = muninn_insn_mnemonic(muninn_block_insn(block, 0));
    try {
        if (text.empty())
            throw Odd("no name");
        muninn_call(muninn_block_insn(block, 0), on_call, nullptr, 0);
    } catch (const Odd &) {
        muninn_log("an instruction has no name");
    }
}

static void on_end(void *)
{
    uint64_t all = 0;
    for (const auto &[name, n] : seen)
        all += n;
    muninn_log("%s", all > 1000 && caught && sum > 0 ? "done" : "too little");
}

int muninn_tool_start(void)
{
    muninn_on_block(on_block, nullptr);
    muninn_on_end(on_end, nullptr);
    return 0;
}
