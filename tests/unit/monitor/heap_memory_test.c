// SPDX-License-Identifier: MIT
//
// The model of the heap where there is no memory for it: it is refused, and nothing dies.
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/vec.h"
#include "monitor/heap/model.h"

// In a child, where no more than `pages` may be mapped. Returns its wait status.
static int open_with(unsigned pages)
{
    pid_t child = fork();

    if (child == 0) {
        static HeapModel model;
        unsigned long size = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%lu", &size) != 1)
            _exit(3);
        struct rlimit limit = {(size + pages) * 4096, (size + pages) * 4096};
        setrlimit(RLIMIT_AS, &limit);
        _exit(places_init(&model) ? 1 : 2);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

TEST(a_model_without_memory_is_refused)
{
    int status = open_with(0);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    for (unsigned pages = 1; pages < 64; pages++) {
        status = open_with(pages);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2));
    }
    status = open_with(1 << 20);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
