// SPDX-License-Identifier: MIT
//
// Runs one instruction on this CPU from a chosen state of registers and memory, and tells
// the state after it.
#ifndef MUNINN_TESTS_UNIT_DEFINEDNESS_NATIVE_H
#define MUNINN_TESTS_UNIT_DEFINEDNESS_NATIVE_H

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/types.h"

enum { NATIVE_MEMORY = 256, NATIVE_FX = 512 };

// rsp points to it while the instruction runs; the room before it is for pushes.
typedef struct NativeState {
    u8 room[256];
    u64 gpr[16];
    u64 flags;
    u64 mask[8];
    u64 host_sp;
    _Alignas(64) u8 memory[NATIVE_MEMORY];
    _Alignas(64) u8 fx[NATIVE_FX]; // of fxsave: x87 and MMX
    _Alignas(64) u8 vector[32][64];
} NativeState;

#define NATIVE_ADDRESS 0x30000000ull // in client memory, as the engine counts it
#define NATIVE_STATE ((NativeState *)NATIVE_ADDRESS)
#define NATIVE_POINTER (NATIVE_ADDRESS + offsetof(NativeState, memory) + 64) // of rdi

enum { S_GPR = 256, S_FLAGS = S_GPR + 128, S_MASK = S_FLAGS + 8, S_HOST_SP = S_MASK + 64,
       S_FX = 768, S_VECTOR = S_FX + 512 };
_Static_assert(offsetof(NativeState, flags) == S_FLAGS, "the template's offsets");
_Static_assert(offsetof(NativeState, host_sp) == S_HOST_SP, "the template's offsets");
_Static_assert(offsetof(NativeState, fx) == S_FX, "the template's offsets");
_Static_assert(offsetof(NativeState, vector) == S_VECTOR, "the template's offsets");

// Offsets from S_GPR, where rsp is.
#define TEMPLATE_TEXT(name, load, save)                                                  \
    ".globl " name "_begin\n" name "_begin:\n"                                           \
    "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"                 \
    "mov $0x30000100, %edi\nmov %rsp, 200(%rdi)\nmov %rdi, %rsp\n" load                  \
    "push 128(%rsp)\npopfq\n"                                                            \
    "mov (%rsp), %rax\nmov 8(%rsp), %rcx\nmov 16(%rsp), %rdx\nmov 24(%rsp), %rbx\n"      \
    "mov 40(%rsp), %rbp\nmov 48(%rsp), %rsi\nmov 56(%rsp), %rdi\nmov 64(%rsp), %r8\n"    \
    "mov 72(%rsp), %r9\nmov 80(%rsp), %r10\nmov 88(%rsp), %r11\nmov 96(%rsp), %r12\n"    \
    "mov 104(%rsp), %r13\nmov 112(%rsp), %r14\nmov 120(%rsp), %r15\n"                    \
    name "_hole:\n.fill 16, 1, 0x90\n"                                                   \
    "mov %rax, (%rsp)\nmov %rcx, 8(%rsp)\nmov %rdx, 16(%rsp)\nmov %rbx, 24(%rsp)\n"      \
    "mov %rbp, 40(%rsp)\nmov %rsi, 48(%rsp)\nmov %rdi, 56(%rsp)\nmov %r8, 64(%rsp)\n"    \
    "mov %r9, 72(%rsp)\nmov %r10, 80(%rsp)\nmov %r11, 88(%rsp)\nmov %r12, 96(%rsp)\n"    \
    "mov %r13, 104(%rsp)\nmov %r14, 112(%rsp)\nmov %r15, 120(%rsp)\n"                    \
    "pushfq\npop %rax\nmov %rax, 128(%rsp)\ncld\n" save                                  \
    "mov 200(%rsp), %rsp\n"                                                              \
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"                  \
    ".globl " name "_end\n" name "_end:\n"

#define FX_LOAD "fxrstor64 512(%rsp)\n"
#define FX_SAVE "fxsave64 512(%rsp)\nfninit\n"
#define EVEX_LOAD                                                                        \
    ".irp n,0,1,2,3,4,5,6,7\nkmovq 136+8*\\n(%rsp), %k\\n\n.endr\n"                      \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"  \
    "28,29,30,31\nvmovdqu64 1024+64*\\n(%rsp), %zmm\\n\n.endr\n"
#define EVEX_SAVE                                                                        \
    ".irp n,0,1,2,3,4,5,6,7\nkmovq %k\\n, 136+8*\\n(%rsp)\n.endr\n"                      \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"  \
    "28,29,30,31\nvmovdqu64 %zmm\\n, 1024+64*\\n(%rsp)\n.endr\nvzeroupper\n"
#define VEX_LOAD                                                                         \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                                     \
    "vmovdqu 1024+64*\\n(%rsp), %ymm\\n\n.endr\n"
#define VEX_SAVE                                                                         \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                                     \
    "vmovdqu %ymm\\n, 1024+64*\\n(%rsp)\n.endr\nvzeroupper\n"

__asm__(".section .rodata\n" TEMPLATE_TEXT("native_integer", "", "")
        TEMPLATE_TEXT("native_x87", FX_LOAD, FX_SAVE)
        TEMPLATE_TEXT("native_vex", FX_LOAD VEX_LOAD, FX_SAVE VEX_SAVE)
        TEMPLATE_TEXT("native_evex", FX_LOAD EVEX_LOAD, FX_SAVE EVEX_SAVE) ".text\n");

#define TEMPLATE(name) extern const u8 name##_begin[], name##_hole[], name##_end[];
TEMPLATE(native_integer)
TEMPLATE(native_x87)
TEMPLATE(native_vex)
TEMPLATE(native_evex)
#undef TEMPLATE

typedef enum NativeKind { NATIVE_INTEGER, NATIVE_X87, NATIVE_VECTOR } NativeKind;

typedef struct NativeCode {
    u8 *begin, *hole;
} NativeCode;

static NativeCode native_code[3];
static bool native_has_avx512;
static sigjmp_buf native_fault;

static void native_on_signal(int signal)
{
    siglongjmp(native_fault, signal);
}

static u8 *native_place_template(u8 *at, NativeKind kind, const u8 *begin, const u8 *hole,
                                 const u8 *end)
{
    memcpy(at, begin, (size_t)(end - begin));
    native_code[kind] = (NativeCode){at, at + (hole - begin)};
    return at + ((end - begin + 63) & ~63l);
}

static bool native_init(void)
{
    static u8 stack[64 * KiB];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = native_on_signal,
                               .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaltstack(&alternative, NULL);
    static const int faults[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigaction(faults[i], &action, NULL);
    native_has_avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    u8 *at = mmap(NULL, 16 * KiB, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *state = mmap((void *)NATIVE_ADDRESS, 64 * KiB, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED || state != (void *)NATIVE_ADDRESS || !__builtin_cpu_supports("avx"))
        return false;
    at = native_place_template(at, NATIVE_INTEGER, native_integer_begin, native_integer_hole,
                               native_integer_end);
    at = native_place_template(at, NATIVE_X87, native_x87_begin, native_x87_hole, native_x87_end);
    if (native_has_avx512)
        native_place_template(at, NATIVE_VECTOR, native_evex_begin, native_evex_hole,
                              native_evex_end);
    else
        native_place_template(at, NATIVE_VECTOR, native_vex_begin, native_vex_hole,
                              native_vex_end);
    return true;
}

// The part of a state that instructions of the kind can see.
static u32 native_size(NativeKind kind)
{
    return kind == NATIVE_INTEGER ? offsetof(NativeState, fx)
           : kind == NATIVE_X87   ? offsetof(NativeState, vector)
                                  : sizeof(NativeState);
}

static void native_set_insn(NativeKind kind, const u8 *bytes, u32 len)
{
    memset(native_code[kind].hole, 0x90, 16);
    memcpy(native_code[kind].hole, bytes, len);
}

// False: it faulted.
static bool native_run(NativeKind kind, const NativeState *before, NativeState *ret_after)
{
    memcpy(NATIVE_STATE, before, native_size(kind));
    if (sigsetjmp(native_fault, 0) != 0) {
        __asm__ volatile("cld\nfninit" ::: "memory");
        return false;
    }
    ((void (*)(void))native_code[kind].begin)();
    memcpy(ret_after, NATIVE_STATE, native_size(kind));
    return true;
}

// The client's mask registers are where definedness_run() expects them.
static inline void native_load_masks(const u64 *mask)
{
    if (native_has_avx512)
        __asm__ volatile("kmovq (%0), %%k0\nkmovq 8(%0), %%k1\nkmovq 16(%0), %%k2\n"
                         "kmovq 24(%0), %%k3\nkmovq 32(%0), %%k4\nkmovq 40(%0), %%k5\n"
                         "kmovq 48(%0), %%k6\nkmovq 56(%0), %%k7\n" ::"r"(mask) : "memory");
}

#endif
