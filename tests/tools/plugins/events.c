// SPDX-License-Identifier: MIT
//
// Says each event that it is told of, as far as events.c makes them on purpose.
#include <errno.h>
#include <fcntl.h>
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

MUNINN_TOOL("events", "says each event")

enum { ARENA = 0x7000000, REQUEST = 0x45580000 }; // as in events.c
static bool flag = true, asks_names = false;
static uint64_t number = 12;
static const char *text = "default", *file = "";

static void on_thread_start(MuninnThread *thread, void *data)
{
    muninn_set_thread_data(thread, (void *)(uint64_t)muninn_thread_id(thread));
    muninn_log("%s %u starts", (const char *)data, muninn_thread_number(thread));
}

static void on_thread_end(MuninnThread *thread, void *data)
{
    bool is_same = muninn_thread_data(thread) == (void *)(uint64_t)muninn_thread_id(thread);
    muninn_log("thread %u ends, its data is %s", muninn_thread_number(thread),
               is_same ? "there" : "lost");
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    muninn_log("thread %u is in a child", muninn_thread_number(thread));
}

static void on_before(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    char name[32];
    if (call->number == SYS_getpriority)
        muninn_log("before %s(%lu, %lu)", muninn_syscall_name(call->number, name, sizeof(name)),
                   call->args[0], call->args[1]);
}

static void on_after(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    if (call->number == SYS_getpriority)
        muninn_log("after: %ld", call->result);
}

static void on_signal(MuninnThread *thread, int signal, void *data)
{
    muninn_log("signal %d", signal);
}

static void on_map(MuninnAddress start, MuninnAddress end, int prot, void *data)
{
    if (start == ARENA)
        muninn_log("mapped %lu bytes, protection %d", end - start, prot);
}

static void on_unmap(MuninnAddress start, MuninnAddress end, void *data)
{
    if (start <= ARENA && end > ARENA)
        muninn_log("unmapped %lu bytes", end - ARENA);
}

static bool on_command(MuninnThread *thread, char *command, void *data)
{
    if (strncmp(command, "greet ", 6) != 0)
        return false;
    muninn_answer(thread, "hello %s\n", command + 6);
    return true;
}

static void count_thread(MuninnThread *thread, void *data)
{
    ++*(unsigned *)data;
}

// What a request of the client's asks for is looked at here, where everything may be called.
static bool on_request(MuninnThread *thread, const uint64_t args[6], uint64_t *result, void *data)
{
    char word[16] = "";
    MuninnModule module = {0};
    unsigned threads = 0;
    if (args[0] != REQUEST)
        return false;
    muninn_each_thread(count_thread, &threads);
    bool read = muninn_read(args[1], word, sizeof(word));
    bool wrote = muninn_write(args[1], "tool", 5), bad = muninn_read(8, word + 8, 1);
    bool found = muninn_module_at(args[2], &module);
    const char *slash = found ? strrchr(module.path, '/') : NULL;
    muninn_log("request %lu: %s, %d %d %d, in %s, %u threads", args[3], word, read, wrote, bad,
               slash && args[2] >= module.start && args[2] < module.end ? slash + 1 : "none",
               threads);
    if (asks_names) {
        MuninnAddress frames[4] = {0};
        char name[64];
        uint32_t context = muninn_context(thread, args[2]);
        size_t count = muninn_context_frames(context, frames, 4);
        muninn_log("context %s, %s, innermost %s", context == muninn_context(thread, args[2]) &&
                   context ? "is the same" : "is another", count > 1 ? "has frames" : "is short",
                   frames[0] == args[2] ? "is right" : "is wrong");
        muninn_log("name %s", muninn_name(thread, args[2], name, sizeof(name)));
    }
    *result = args[3] + 1;
    return true;
}

static void on_end(void *data)
{
    muninn_log("the end");
    if (*file) {
        int fd = muninn_open(file);
        if (fd < 0 || write(fd, text, strlen(text)) < 0)
            muninn_log("cannot write: %s", strerror(-fd));
    }
}

int muninn_tool_start(void)
{
    muninn_option_bool("flag", &flag, "A choice.");
    muninn_option_number("number", &number, "A number.");
    muninn_option_text("text", &text, "A text.");
    muninn_option_text("file", &file, "A file.");
    muninn_option_bool("names", &asks_names, "Contexts and names.");
    muninn_log("options %d %lu %s", flag, number, text);
    if (asks_names)
        muninn_need(MUNINN_NEED_CONTEXTS | MUNINN_NEED_NAMES);
    muninn_on_thread_start(on_thread_start, "thread");
    muninn_on_thread_end(on_thread_end, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_syscall_before(on_before, NULL);
    muninn_on_syscall_after(on_after, NULL);
    muninn_on_signal(on_signal, NULL);
    muninn_on_map(on_map, NULL);
    muninn_on_unmap(on_unmap, NULL);
    muninn_on_command(on_command, "greet NAME    says hello", NULL);
    muninn_on_request(on_request, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
