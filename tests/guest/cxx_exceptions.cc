// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2 -pthread
// BUILD[static]: -O2 -pthread -static
// STRESS: tiny-blocks
//
// Exceptions through many frames with destructors, rethrown, and carried across threads.
#include "guest.h"
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static thread_local long unwound;

struct Guard {
    ~Guard() { unwound++; }
};

__attribute__((noinline)) static int descend(int depth)
{
    Guard guard;
    if (depth == 0)
        throw std::runtime_error("bottom");
    return descend(depth - 1) + 1;
}

static std::string try_it(int depth)
{
    try {
        try {
            descend(depth);
        } catch (const std::logic_error &) {
            return "wrong handler";
        } catch (...) {
            Guard guard;
            throw;
        }
    } catch (const std::exception &e) {
        return e.what();
    }
    return "no exception";
}

int main()
{
    for (int i = 0; i < 2000; i++)
        CHECK(try_it(i % 100) == "bottom");
    say("main unwound %ld\n", unwound);

    std::vector<std::thread> threads;
    std::exception_ptr carried[4];
    long counts[4];
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t, &carried, &counts] {
            for (int i = 0; i < 500; i++)
                CHECK(try_it(20 + t) == "bottom");
            counts[t] = unwound;
            try {
                throw 1000 + t;
            } catch (...) {
                carried[t] = std::current_exception();
            }
        });
    for (auto &thread : threads)
        thread.join();
    for (int t = 0; t < 4; t++) {
        try {
            std::rethrow_exception(carried[t]);
        } catch (int value) {
            say("thread %d unwound %ld, carried %d\n", t, counts[t], value);
        }
    }
    return 0;
}
