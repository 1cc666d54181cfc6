// SPDX-License-Identifier: MIT
//
// syscount: the system calls of a program, how often they fail and how long they take, as
// strace -c shows them. Shows events of system calls and data of a thread.
#include <muninn/tool.h>
#include <stdlib.h>
#include <time.h>

MUNINN_TOOL("syscount", "counts system calls, their errors and their time")

enum { NUMBERS = 1024 };

typedef struct Row {
    uint64_t number, calls, errors, ns;
} Row;
static Row rows[NUMBERS];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// A thread makes one call at a time: when it began is all that the thread has to keep.
static void on_before(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    __atomic_fetch_add(&rows[call->number % NUMBERS].calls, 1, __ATOMIC_RELAXED);
    muninn_set_thread_data(thread, (void *)now_ns());
}

static void on_after(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    Row *row = &rows[call->number % NUMBERS];
    uint64_t began = (uint64_t)muninn_thread_data(thread);
    if (began)
        __atomic_fetch_add(&row->ns, now_ns() - began, __ATOMIC_RELAXED);
    if (call->result < 0 && call->result > -4096)
        __atomic_fetch_add(&row->errors, 1, __ATOMIC_RELAXED);
}

static int longest_first(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : (x->number > y->number) - (x->number < y->number);
}

static void on_end(void *data)
{
    Row sum = {0};
    for (uint64_t i = 0; i < NUMBERS; i++) {
        rows[i].number = i;
        sum.calls += rows[i].calls;
        sum.errors += rows[i].errors;
        sum.ns += rows[i].ns;
    }
    qsort(rows, NUMBERS, sizeof(rows[0]), longest_first);
    muninn_log("%6s %11s %11s %9s %9s  %s", "% time", "seconds", "usecs/call", "calls", "errors",
               "syscall");
    for (int i = 0; i < NUMBERS; i++) {
        const Row *r = &rows[i];
        char name[64];
        if (r->calls)
            muninn_log("%6.2f %11.6f %11lu %9lu %9lu  %s",
                       sum.ns ? 100.0 * (double)r->ns / (double)sum.ns : 0, (double)r->ns / 1e9,
                       r->ns / r->calls / 1000, r->calls, r->errors,
                       muninn_syscall_name(r->number, name, sizeof(name)));
    }
    muninn_log("%6.2f %11.6f %11lu %9lu %9lu  total", 100.0, (double)sum.ns / 1e9,
               sum.calls ? sum.ns / sum.calls / 1000 : 0, sum.calls, sum.errors);
}

int muninn_tool_start(void)
{
    muninn_on_syscall_before(on_before, NULL);
    muninn_on_syscall_after(on_after, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
