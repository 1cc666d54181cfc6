// SPDX-License-Identifier: MIT
// BUILD: -O2 -fno-stack-protector
// STRESS: tiny-blocks
//
// Threads without a libc's help: raw clone with PARENT_SETTID, CHILD_SETTID, CHILD_CLEARTID (whose
// futex wake the parent awaits) and a TLS of its own by CLONE_SETTLS; and clone3.
#include "guest.h"
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { STACK = 65536 };
static volatile int parent_tid, child_tid, seen_tid, child_result, tls_value;
static uint64_t tls_block[16];

__attribute__((used)) static void body(void)
{
    int value;
    __asm__ volatile("mov %%fs:8, %0" : "=r"(value));
    tls_value = value;
    seen_tid = (int)syscall(SYS_gettid);
    for (int i = 0; i < 1000; i++)
        child_result += i;
}

// The child starts on an empty stack of its own, so everything it needs stays in registers.
long start_thread(long flags, void *stack, volatile int *ptid, volatile int *ctid, void *tls);
__asm__(".text\nstart_thread:\n"
        "    mov %rcx, %r10\n"
        "    mov $56, %eax\n"
        "    syscall\n"
        "    test %eax, %eax\n"
        "    jz 1f\n"
        "    ret\n"
        "1:  xor %ebp, %ebp\n"
        "    call body\n"
        "    xor %edi, %edi\n"
        "    mov $60, %eax\n"
        "    syscall\n"
        "    ud2\n");

long start_thread3(struct clone_args *args, size_t size);
__asm__(".text\nstart_thread3:\n"
        "    mov $435, %eax\n"
        "    syscall\n"
        "    test %eax, %eax\n"
        "    jz 1f\n"
        "    ret\n"
        "1:  call body\n"
        "    xor %edi, %edi\n"
        "    mov $60, %eax\n"
        "    syscall\n"
        "    ud2\n");

static void await_exit(void)
{
    int tid;
    while ((tid = child_tid) != 0)
        syscall(SYS_futex, &child_tid, FUTEX_WAIT, tid, NULL, NULL, 0);
}

int main(void)
{
    // `body` calls syscall(), which writes errno through fs only on failure: 16 words are enough.
    tls_block[0] = (uint64_t)tls_block;
    tls_block[1] = 4711;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    for (int i = 0; i < 300; i++) {
        child_tid = -1;
        parent_tid = child_result = tls_value = 0;
        long tid = start_thread(flags, stack + STACK - 64, &parent_tid, &child_tid, tls_block);
        CHECK(tid > 0 && parent_tid == tid);
        await_exit();
        CHECK(seen_tid == tid && child_result == 499500 && tls_value == 4711);
    }
    say("clone: result %d, tls %d\n", child_result, tls_value);

    struct clone_args args = {.flags = flags, .stack = (uint64_t)stack, .stack_size = STACK,
                              .parent_tid = (uint64_t)&parent_tid, .tls = (uint64_t)tls_block,
                              .child_tid = (uint64_t)&child_tid};
    for (int i = 0; i < 100; i++) {
        child_tid = -1;
        child_result = 0;
        long tid = start_thread3(&args, sizeof args);
        CHECK(tid > 0);
        await_exit();
        CHECK(seen_tid == tid && parent_tid == tid);
    }
    say("clone3: result %d\n", child_result);
    SHOW(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
    SHOW(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0));
    SHOW(syscall(SYS_clone3, &args, 8));
    return 0;
}
