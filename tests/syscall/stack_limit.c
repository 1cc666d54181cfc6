// SPDX-License-Identifier: MIT
// BUILD: -O1 -fno-optimize-sibling-calls
// LIMIT: stack=67108864
//
// With a larger soft stack limit the main stack grows to it; the argument area and getrlimit agree.
#include "guest.h"
#include <sys/resource.h>

__attribute__((noinline)) static long descend(int depth)
{
    volatile char frame[16000];
    frame[0] = (char)depth;
    frame[15999] = (char)depth;
    return depth == 0 ? 0 : descend(depth - 1) + (frame[0] == frame[15999]);
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    say("limit %lu\n", (unsigned long)limit.rlim_cur);
    say("depth %ld\n", descend(3800)); // some 61 MB
    limit.rlim_cur = 1 << 20;
    SHOW(setrlimit(RLIMIT_STACK, &limit));
    pid_t child = fork();
    if (child == 0) {
        descend(500);
        _exit(0);
    }
    wait_and_show("child on the stack it has", child);
    return 0;
}
