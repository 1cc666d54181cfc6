// SPDX-License-Identifier: MIT
//
// The crash report of our own bugs: what happened, where the client was, the
// block it was in, the last dispatches, and the engine's backtrace. Everything
// here is written for a process whose state cannot be trusted.

#include <execinfo.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/decode/decode.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/toolapi/toolapi.h"

static const char *const gpr_names[GPR_COUNT] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                 "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                 "r12", "r13", "r14", "r15"};

static void report_registers(const ThreadCtx *ctx)
{
    for (unsigned r = 0; r < GPR_COUNT; r += 4)
        log_line("  %s %016lx  %s %016lx  %s %016lx  %s %016lx", gpr_names[r], ctx->gpr[r],
                 gpr_names[r + 1], ctx->gpr[r + 1], gpr_names[r + 2], ctx->gpr[r + 2],
                 gpr_names[r + 3], ctx->gpr[r + 3]);
}

static void report_code(GuestAddr pc, unsigned count)
{
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    for (unsigned i = 0; i < count; i++) {
        u8 bytes[15];
        size_t got = sizeof(bytes);
        while (got && !guest_read(pc, bytes, got))
            got--;
        Insn insn;
        ZydisDecodedInstruction z;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        char text[128];
        if (!got || decode_insn(pc, bytes, got, &insn) != DECODE_OK ||
            !decode_operands(&insn, &z, operands)) {
            log_line("    %lx  (no instruction)", pc);
            return;
        }
        ZydisFormatterFormatInstruction(&formatter, &z, operands, z.operand_count_visible, text,
                                        sizeof(text), pc, NULL);
        log_line("    %lx  %s", pc, text);
        pc += insn.len;
    }
}

static void report_mapping(const char *what, u64 address)
{
    if (address - GATEWAY_START < GATEWAY_SIZE)
        log_line("  %s %lx: in the gateways", what, address);
    else if (cache_contains(address))
        log_line("  %s %lx: in the code cache", what, address);
    else
        log_line("  %s %lx", what, address);
}

static void report_client(void)
{
    const ThreadCtx *ctx = &thread_ctx;
    log_line("client thread %d, pc %lx, exit reason %u, in cache %lu, stepping %u, pending %u",
             ctx->thread.tid, ctx->pc, ctx->gateway.exit_reason, ctx->dispatch.in_cache,
             ctx->dispatch.stepping, ctx->gateway.pending_signal);
    report_registers(ctx);
    log_line("code at the client's pc:");
    report_code(ctx->pc, 8);
    log_line("last dispatches, newest first:");
    for (unsigned i = 0; i < ARRAY_LEN(ctx->dispatch.recent_pc); i++) {
        unsigned at = (ctx->dispatch.recent_next - 1 - i) % ARRAY_LEN(ctx->dispatch.recent_pc);
        log_line("    %lx", ctx->dispatch.recent_pc[at]);
    }
}

static void report_backtrace(void)
{
    void *frames[32];
    int n = backtrace(frames, ARRAY_LEN(frames));
    log_line("engine backtrace:");
    backtrace_symbols_fd(frames, n, log_fd());
}

static void report_end(void)
{
    log_line("This is a bug of muninn, not of the program. Please report it with the lines above.");
}

static void on_panic(const char *file, int line, const char *text)
{
    log_line("muninn: internal error: %s:%d: %s", file, line, text);
    report_client();
    report_backtrace();
    report_end();
}

static _Noreturn void end_process(void)
{
    raw_syscall2(SYS_kill, (u64)raw_syscall0(SYS_getpid), SIGKILL);
    _exit(134);
}

static void on_fault(int sig, siginfo_t *info, void *ucontext)
{
    ucontext_t *uc = ucontext;
    u64 pc = (u64)uc->uc_mcontext.gregs[REG_RIP];
    if (tool->crashed && tool->crashed(sig, pc, (u64)info->si_addr)) {
        report_backtrace();
        end_process();
    }
    log_line("muninn: internal error: signal %d (code %d) at address %lx", sig, info->si_code,
             (unsigned long)info->si_addr);
    report_mapping("host pc", pc);
    CodePlace place;
    if (cache_place(pc, &place))
        log_line("  guest pc %lx, spilled %x, boundary %d", place.pc, place.spilled,
                 place.boundary);
    report_client();
    report_backtrace();
    report_end();
    end_process();
}

void crash_init(void)
{
    // The first call loads libgcc, which allocates: not in a crash.
    void *frame[1];
    backtrace(frame, 1);
    panic_hook = on_panic;
    signal_crash_hook = on_fault;
}
