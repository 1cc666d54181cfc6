// SPDX-License-Identifier: MIT
//
// The kernel's clone and clone3. The call goes out in the form that the client
// used, since sandboxes often allow only one of the two. The child's %fs and
// stack are ours to choose: the client's own are only values in its ThreadCtx.
#include <linux/sched.h>
#include <string.h>

#include "base/raw_syscall.h"
#include "engine/thread/thread_internal.h"

// i64 clone_call(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
//
// The child starts with the new stack, on which native_clone_on_stack() has
// put the function to call and its argument.
__asm__(".text\n"
        ".p2align 4\n"
        ".globl clone_call\n"
        ".hidden clone_call\n"
        ".type clone_call, @function\n"
        "clone_call:\n"
        "    .cfi_startproc\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    mov %r8, %r10\n"
        "    mov %r9, %r8\n"
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jz 1f\n"
        "    ret\n"
        "    .cfi_undefined rip\n"
        "1:  xor %ebp, %ebp\n"
        "    pop %rax\n"
        "    pop %rdi\n"
        "    call *%rax\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size clone_call, . - clone_call\n");

i64 clone_call(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4);

// CLONE_CLEAR_SIGHAND would clear our own handlers too; the child does that
// for the client's alone.
#define NOT_NATIVE (CLONE_SETTLS | CLONE_CLEAR_SIGHAND)

static struct clone_args kernel_args(const CloneArgs *args, u64 flags)
{
    return (struct clone_args){
        .flags = flags,
        .pidfd = args->pidfd,
        .child_tid = args->child_tid,
        .parent_tid = args->parent_tid,
        .exit_signal = args->exit_signal,
        .set_tid = args->set_tid,
        .set_tid_size = args->set_tid_size,
        .cgroup = args->cgroup,
    };
}

i64 native_clone(const CloneArgs *args)
{
    u64 flags = args->flags & ~NOT_NATIVE;

    if (args->is_clone3) {
        struct clone_args native = kernel_args(args, flags);
        return raw_syscall2(SYS_clone3, (u64)&native, sizeof(native));
    }
    return raw_syscall6(SYS_clone, flags | args->exit_signal, 0, args->parent_tid,
                        args->child_tid, 0, 0);
}

i64 native_clone_on_stack(const CloneArgs *args, u8 *stack, u64 stack_size, u64 tls,
                          void (*child)(void *), void *data)
{
    u64 flags = (args->flags & ~NOT_NATIVE) | (tls ? CLONE_SETTLS : 0);
    u64 *top = (u64 *)(stack + stack_size);

    // Behind the two pops the stack is aligned for the call.
    *--top = (u64)data;
    *--top = (u64)child;
    if (args->is_clone3) {
        struct clone_args native = kernel_args(args, flags);
        native.stack = (u64)stack;
        native.stack_size = (u64)top - (u64)stack;
        native.tls = tls;
        return clone_call(SYS_clone3, (u64)&native, sizeof(native), 0, 0, 0);
    }
    return clone_call(SYS_clone, flags | args->exit_signal, (u64)top, args->parent_tid,
                      args->child_tid, tls);
}
