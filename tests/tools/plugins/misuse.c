// SPDX-License-Identifier: MIT
//
// Uses the interface as it must not be used, in the way that --how names.
#include <muninn/tool.h>
#include <string.h>

MUNINN_TOOL("misuse", "uses the interface wrongly")

static const char *how = "";
static MuninnInsn *kept;

static void on_call(MuninnThread *thread, void *data, uint64_t value)
{
    MuninnModule module;
    uint64_t result;
    if (strcmp(how, "client-call") == 0)
        muninn_call_client(thread, 0, NULL, 0, &result);
    else
        muninn_module_at(0, &module);
}

static void on_allocation(MuninnThread *thread, const MuninnAllocation *event, void *data)
{
    uint64_t result;
    muninn_call_client(thread, 0, NULL, 0, &result);
}

static void on_block(MuninnBlock *block, void *data)
{
    MuninnInsn *insn = muninn_block_insn(block, 0);
    if (strcmp(how, "late-wish") == 0)
        muninn_on_block(on_block, NULL);
    else if (strcmp(how, "late-option") == 0)
        muninn_option_text("x", &how, "");
    else if (strcmp(how, "no-insn") == 0)
        muninn_block_insn(block, 1000);
    else if (strcmp(how, "no-function") == 0)
        muninn_call(insn, NULL, NULL, 0);
    else if (strcmp(how, "no-word") == 0)
        muninn_update(insn, 99, MUNINN_ADD, MUNINN_CONSTANT, 1);
    else if (strcmp(how, "no-register") == 0)
        muninn_update(insn, 0, MUNINN_ADD, MUNINN_REGISTER, 99);
    else if (strcmp(how, "client-call") == 0 || strcmp(how, "module") == 0)
        muninn_call(insn, on_call, NULL, 0);
    kept = insn;
}

static void on_syscall(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    if (strcmp(how, "old-insn") == 0 && kept)
        muninn_update(kept, 0, MUNINN_ADD, MUNINN_CONSTANT, 1);
}

int muninn_tool_start(void)
{
    MuninnWrap nothing = {0};
    muninn_option_text("how", &how, "In which way.");
    if (strcmp(how, "taken-name") == 0)
        muninn_option_text("stats", &how, "");
    muninn_counter();
    muninn_word();
    for (int i = 1; i < 100 && strcmp(how, "many-words") == 0; i++)
        muninn_word();
    for (int i = 0; i < 100 && strcmp(how, "many-buffers") == 0; i++)
        muninn_buffer(100, NULL, NULL);
    if (strcmp(how, "empty-wrap") == 0)
        muninn_wrap(NULL, "main", &nothing);
    if (strcmp(how, "no-callback") == 0)
        muninn_on_end(NULL, NULL);
    if (strcmp(how, "allocation") == 0)
        muninn_on_allocation(on_allocation, NULL);
    muninn_on_block(on_block, NULL);
    muninn_on_syscall_before(on_syscall, NULL);
    return 0;
}
