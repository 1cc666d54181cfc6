// SPDX-License-Identifier: MIT
//
// The way from emitted code to trace_call_event(), which is ordinary C: it may
// use vector registers, and it wants to see all of the client's registers.
//
// The tool-call gateway has stored the registers that C may change, and rsp;
// the others still hold the client's values at the first instruction here. The
// vector state goes to ctx->xsave, which belongs to nobody while a thread is
// inside the cache.
#include "engine/trace/trace.h"
#include "engine/trace/trace_internal.h"

u64 trace_xsave_mask;

__attribute__((used)) void trace_call_with_gprs(ThreadCtx *ctx, GuestAddr pc)
{
    u32 low = (u32)trace_xsave_mask, high = (u32)(trace_xsave_mask >> 32);
    __asm__ volatile("xsave64 (%0)" : : "r"(ctx->xsave), "a"(low), "d"(high) : "memory");
    trace_call_event(ctx, pc);
    __asm__ volatile("xrstor64 (%0)" : : "r"(ctx->xsave), "a"(low), "d"(high) : "memory");
}

#define SAVED_AT(reg) "i"(offsetof(ThreadCtx, gpr) + 8 * (reg))

__attribute__((naked)) void trace_on_call(ThreadCtx *ctx, u64 arg, GuestAddr address)
{
    (void)ctx;
    (void)arg;
    (void)address;
    __asm__("mov %%rbx, %c0(%%rdi)\n\t"
            "mov %%rbp, %c1(%%rdi)\n\t"
            "mov %%r12, %c2(%%rdi)\n\t"
            "mov %%r13, %c3(%%rdi)\n\t"
            "mov %%r14, %c4(%%rdi)\n\t"
            "mov %%r15, %c5(%%rdi)\n\t"
            "jmp trace_call_with_gprs"
            :
            : SAVED_AT(RBX), SAVED_AT(RBP), SAVED_AT(R12), SAVED_AT(R13), SAVED_AT(R14),
              SAVED_AT(R15));
}
