// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// Threads whose stacks are shorter than a red zone, at the beginning of a mapping and where clone3
// says so.
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

static volatile uint32_t running;

// The child has nothing but registers: it clears `running`, which wakes nobody, and ends.
static long start(struct clone_args *args)
{
    long result;
    running = 1;
    __asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjne 1f\n\tmovl $0, %2\n\t"
                     "movl %3, %%eax\n\txorl %%edi, %%edi\n\tsyscall\n1:"
                     : "=a"(result)
                     : "a"(SYS_clone3), "m"(running), "i"(SYS_exit), "D"(args), "S"(sizeof(*args))
                     : "rcx", "r11", "memory", "cc");
    while (running)
        sched_yield();
    return result;
}

int main(void)
{
    char *stack = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct { unsigned long at, size; } stacks[] = {
        {0, 16}, {0, 64}, {PAGE, 8}, {PAGE + 8, 128}, {0, 2 * PAGE},
    };
    for (unsigned i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        struct clone_args args = {
            .flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                     CLONE_SYSVSEM,
            .stack = (uintptr_t)stack + stacks[i].at,
            .stack_size = stacks[i].size,
        };
        printf("%s\n", start(&args) > 0 ? "ran" : "failed");
    }
    return 0;
}
