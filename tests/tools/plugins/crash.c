// SPDX-License-Identifier: MIT
//
// A tool that crashes, where --where says.
#include <muninn/tool.h>
#include <stdlib.h>
#include <string.h>

MUNINN_TOOL("crash", "crashes")

static const char *where = "";
static const char *how = "segv";

__attribute__((noinline)) static void crash(void)
{
    if (strcmp(how, "abort") == 0)
        abort();
    char *volatile none = NULL;
    int *volatile nowhere = (int *)8;
    if (strcmp(how, "strlen") == 0)
        muninn_log("%zu", strlen(none));
    *nowhere = 1;
}

static void on_call(MuninnThread *thread, void *data, uint64_t value)
{
    crash();
}

static void on_block(MuninnBlock *block, void *data)
{
    if (strcmp(where, "block") == 0)
        crash();
    if (strcmp(where, "call") == 0)
        muninn_call(muninn_block_insn(block, 0), on_call, NULL, 0);
    if (strcmp(where, "hot") == 0)
        muninn_call(muninn_block_insn(block, 0), on_call, NULL, MUNINN_CALL_HOT);
}

static void on_end(void *data)
{
    if (strcmp(where, "end") == 0)
        crash();
}

static void on_thread_start(MuninnThread *thread, void *data)
{
    if (strcmp(where, "thread") == 0)
        crash();
}

static void on_syscall(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    if (strcmp(where, "syscall") == 0)
        crash();
}

static void before(MuninnThread *thread, MuninnCall *call, void *data)
{
    crash();
}

int muninn_tool_start(void)
{
    MuninnWrap wrap = {.before = before};
    muninn_option_text("where", &where, "Where it crashes.");
    muninn_option_text("how", &how, "segv, abort or strlen.");
    if (strcmp(where, "start") == 0)
        crash();
    if (strcmp(where, "fails") == 0) {
        muninn_log("there is no reason");
        return 3;
    }
    if (strcmp(where, "wrap") == 0)
        muninn_wrap(NULL, "main", &wrap);
    muninn_on_block(on_block, NULL);
    muninn_on_end(on_end, NULL);
    muninn_on_thread_start(on_thread_start, NULL);
    muninn_on_syscall_before(on_syscall, NULL);
    return 0;
}
