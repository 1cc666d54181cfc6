// SPDX-License-Identifier: MIT
//
// include/muninn/client.h, as C and as C++ (and with -Wall -Wextra -Wpedantic it is silent).
#include <muninn/client.h>

#include "guest.h"

static long sum(long tid, long a, long b, long c)
{
    return tid > 0 ? a + 10 * b + 100 * c : -1;
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 0;
    const char *tool = argc > 2 ? argv[2] : "";
    char name[32] = "", cut[3] = "", bytes[64];
    unsigned long leaked = 0;

    CHECK((int)MUNINN_RUNNING == depth);
    CHECK(MUNINN_VERSION_RUNNING == (depth ? MUNINN_CLIENT_VERSION : 0));
    CHECK(MUNINN_TOOL_NAME(name, sizeof name) == strlen(tool));
    CHECK(strcmp(name, tool) == 0);
    CHECK(MUNINN_TOOL_NAME(cut, sizeof cut) == strlen(tool) && strncmp(cut, tool, 2) == 0);
    CHECK(MUNINN_TOOL_NAME(NULL, 0) == strlen(tool));
    CHECK(MUNINN_TOOL_NAME(1, 8) == 0);
    CHECK(MUNINN_NON_SIMD_CALL3(sum, 1, 2, 3) == (depth ? 321ul : 0));
    CHECK(MUNINN_COUNT_ERRORS == 0);
    CHECK(MUNINN_MONITOR_COMMAND("no such command") == (depth ? 1 : 0));
    CHECK(MUNINN_MONITOR_COMMAND(NULL) == (depth ? 1 : 0));
    MUNINN_DISABLE_ERROR_REPORTING;
    MUNINN_ENABLE_ERROR_REPORTING;
    unsigned long id = MUNINN_STACK_REGISTER(0x1000, 0x2000);
    MUNINN_STACK_CHANGE(id, 0x1000, 0x3000);
    MUNINN_STACK_DEREGISTER(id);
    MUNINN_DISCARD_TRANSLATIONS(main, 100);
    MUNINN_MALLOCLIKE_BLOCK(bytes, 8, 0, 0);
    MUNINN_RESIZEINPLACE_BLOCK(bytes, 8, 4, 0);
    MUNINN_FREELIKE_BLOCK(bytes, 0);
    MUNINN_CREATE_MEMPOOL_EXT(bytes, 0, 0, MUNINN_MEMPOOL_AUTO_FREE);
    CHECK(MUNINN_MEMPOOL_EXISTS(bytes) == 0);
    MUNINN_DESTROY_MEMPOOL(bytes);
    CHECK(MUNINN_MAKE_MEM_DEFINED(bytes, 8) == 0 || tool[0] == 'e');
    CHECK(MUNINN_CHECK_VALUE_IS_DEFINED(depth) == 0 || tool[0] == 'e');
    MUNINN_COUNT_LEAKS(&leaked, &leaked, &leaked, &leaked);
    MUNINN_DO_LEAK_CHECK;
    MUNINN_MAP_IP_TO_SRCLOC(main, bytes);
    CHECK(MUNINN_PRINTF("hello %s\n", "log") == (depth ? 10 : 0));
    CHECK(MUNINN_PRINTF_BACKTRACE("from %s", "here") == (depth ? 9 : 0));
    say("done\n");
    return 0;
}
