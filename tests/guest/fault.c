// SPDX-License-Identifier: MIT
// BUILD: -O1 -no-pie -fno-pie -z noexecstack
// RUN[caught]: caught
// RUN[int3]: int3 => SIGTRAP core
// RUN[int1]: int1 => SIGTRAP core
// RUN[ud2]: ud2 => SIGILL core
// RUN[bad_opcode]: bad_opcode => SIGILL core
// RUN[divide_by_zero]: divide_by_zero => SIGFPE core
// RUN[hlt]: hlt => SIGSEGV core
// RUN[misaligned_sse]: misaligned_sse => SIGSEGV core
// RUN[non_canonical_read]: non_canonical_read => SIGSEGV core
// RUN[non_canonical_stack]: non_canonical_stack => SIGBUS core
// RUN[null_read]: null_read => SIGSEGV core
// RUN[write_read_only]: write_read_only => SIGSEGV core
// RUN[beyond_end_of_file]: beyond_end_of_file => SIGBUS core
// RUN[jump_unmapped]: jump_unmapped => SIGSEGV core
// RUN[jump_not_executable]: jump_not_executable => SIGSEGV core
// RUN[call_null]: call_null => SIGSEGV core
// STRESS: tiny-blocks
// STRESS: no-link
//
// Every way an instruction can fault, from known registers. Caught: the handler prints signal,
// code, address, trap number, error code, rip relative to the instruction, and each register that
// is not as it was. Uncaught: the program dies of the same signal.
//
// An int1 is told behind itself, as the manuals say. Under some hypervisors the machine tells it at
// the instruction; natively that counts as told behind it.
#include "../../include/muninn/client.h"
#include "guest.h"
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

// Fixed addresses, so that the output may show them. Pages: 0 read-write, 1 unmapped, 2 read-only,
// 3 no access, 4 ends in half an instruction, 5 unmapped, 6 a mapping beyond the end of its file.
#define BASE 0x12340000000
enum { PAGE = 4096 };

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, REGISTER_COUNT };

static const struct {
    const char *name;
    int greg;
    uint64_t value;
} registers[REGISTER_COUNT] = {
    [RAX] = {"rax", REG_RAX, 0x1111111111111111}, [RBX] = {"rbx", REG_RBX, BASE},
    [RCX] = {"rcx", REG_RCX, 0x1388},             [RDX] = {"rdx", REG_RDX, 0x4444444444444444},
    [RSI] = {"rsi", REG_RSI, BASE},               [RDI] = {"rdi", REG_RDI, BASE + 16},
    [RBP] = {"rbp", REG_RBP, 0x7777777777777777}, [R8] = {"r8", REG_R8, BASE + PAGE},
    [R9] = {"r9", REG_R9, BASE + 2 * PAGE},       [R10] = {"r10", REG_R10, BASE + 3 * PAGE},
    [R11] = {"r11", REG_R11, BASE + 5 * PAGE - 3}, [R12] = {"r12", REG_R12, BASE + 6 * PAGE},
    [R13] = {"r13", REG_R13, 0},                  [R14] = {"r14", REG_R14, 0x8000000000000123},
    [R15] = {"r15", REG_R15, 0xffffffffffffffff},
};

// name, the faulting instruction, what comes before it.
#define FAULTS(X) \
    X(int3, "int3", "") \
    X(int_3_long, ".byte 0xcd, 3", "") \
    X(int1, ".byte 0xf1", "") \
    X(int_0x81, "int $0x81", "") \
    X(ud2, "ud2", "") \
    X(ud1, "ud1 %rax, %rcx", "") \
    X(bad_opcode, ".byte 0x06", "") \
    X(bad_lock, ".byte 0xf0, 0x90", "") \
    X(divide_by_zero, "div %r13", "") \
    X(divide_overflow, "idiv %r15", "mov $0x8000000000000000, %rax; cqo") \
    X(hlt, "hlt", "") \
    X(cli, "cli", "") \
    X(in_port, "in %dx, %al", "") \
    X(misaligned_sse, "movaps 8(%rbx), %xmm0", "") \
    X(misaligned_cmpxchg16b, "lock cmpxchg16b 8(%rsi)", "") \
    X(non_canonical_read, "mov (%r14), %rax", "") \
    X(non_canonical_index, "mov %rax, 8(%rbx,%r14,1)", "") \
    X(non_canonical_stack, "push %rax", "mov %r14, %rsp") \
    X(non_canonical_rbp, "mov (%rbp), %rax", "") \
    X(null_read, "mov 0x10(%r13), %rax", "") \
    X(null_write, "movl $1, (%r13)", "stc") \
    X(unmapped_rmw, "addq $1, 0x18(%r8)", "") \
    X(unmapped_split, "mov -4(%r8), %rax", "") \
    X(write_read_only, "mov %al, 7(%r9)", "std") \
    X(xchg_read_only, "xchg %rax, (%r9)", "") \
    X(read_no_access, "vmovdqu 0x40(%r10), %ymm1", "") \
    X(beyond_end_of_file, "mov (%r12), %eax", "") \
    X(jump_unmapped, "jmp *%r8", "") \
    X(jump_not_executable, "jmp *%rbx", "") \
    X(jump_no_access, "jmp *%r10", "") \
    X(jump_null, "jmp *%r13", "") \
    X(jump_into_end_of_page, "jmp *%r11", "") \
    X(call_null, "call *%r13", "") \
    X(call_unmapped, "call *%r8", "") \
    X(call_non_canonical, "call *%r14", "") \
    X(call_non_canonical_short, "call *%rbp", "") \
    X(call_non_canonical_memory, "call *8(%rsp)", "push %r14; push %rax") \
    X(call_kernel, "call *%r15", "") \
    X(call_through_unmapped, "call *0x20(%r8)", "") \
    X(call_on_read_only_stack, "call *%rbx", "lea 16(%r9), %rsp") \
    X(call_tls_on_read_only_stack, "call *%fs:0x10", "lea 16(%r9), %rsp") \
    X(ret_unmapped, "ret", "push %r8") \
    X(push_unmapped, "push %rax", "lea 0x800(%r8), %rsp") \
    X(pop_unmapped, "pop %rdx", "mov %r8, %rsp") \
    X(pop_to_unmapped, "popq 8(%r8)", "lea 32(%rbx), %rsp") \
    X(push_from_unmapped, "pushq 8(%r8)", "lea 32(%rbx), %rsp") \
    X(rep_movsb_read_only, "rep movsb", "lea 0x200(%r9), %rdi; mov %rbx, %rsi") \
    X(rep_movsb_source_end, "rep movsb", "lea -0x100(%r8), %rsi; mov %rbx, %rdi") \
    X(rep_stosq_end, "rep stosq", "") \
    X(rep_lodsd_end, "rep lodsl", "") \
    X(repe_scasb_end, "repe scasb", "mov $0, %al; mov $0, %rcx; dec %rcx") \
    X(x87_divide_by_zero, "fwait", "fninit; push $0x37b; fldcw (%rsp); fld1; fldz; fdivrp") \
    X(sse_divide_by_zero, "divss %xmm1, %xmm0", \
      "push $0x1d80; ldmxcsr (%rsp); xorps %xmm1, %xmm1; cvtsi2ss %r15, %xmm0") \
    X(sse_invalid, "sqrtsd %xmm0, %xmm1", "push $0x1f00; ldmxcsr (%rsp); cvtsi2sd %r15, %xmm0")

uint64_t fault_values[REGISTER_COUNT];

#define EMIT(name, instruction, before) \
    void fault_##name(void); \
    extern char fault_at_##name[]; \
    __asm__(".text\nfault_" #name ":\n" \
            "mov fault_values+0(%rip), %rax; mov fault_values+8(%rip), %rbx\n" \
            "mov fault_values+16(%rip), %rcx; mov fault_values+24(%rip), %rdx\n" \
            "mov fault_values+32(%rip), %rsi; mov fault_values+40(%rip), %rdi\n" \
            "mov fault_values+48(%rip), %rbp; mov fault_values+56(%rip), %r8\n" \
            "mov fault_values+64(%rip), %r9; mov fault_values+72(%rip), %r10\n" \
            "mov fault_values+80(%rip), %r11; mov fault_values+88(%rip), %r12\n" \
            "mov fault_values+96(%rip), %r13; mov fault_values+104(%rip), %r14\n" \
            "mov fault_values+112(%rip), %r15\n" \
            "mov %rsp, fault_rsp(%rip)\n" \
            "cmp %r15, %r15\n" before "\n" \
            "fault_at_" #name ": " instruction "\nud2\n");
uint64_t fault_rsp;
FAULTS(EMIT)

static const struct {
    const char *name;
    void (*run)(void);
    char *at;
} faults[] = {
#define ROW(name, instruction, before) {#name, fault_##name, fault_at_##name},
    FAULTS(ROW)
};

static sigjmp_buf home;
static const char *fault_at;

static void show_stack_pointer(uint64_t rsp)
{
    if (rsp - BASE < 16 * PAGE || rsp >> 47)
        say(" rsp=%lx", rsp);
    else
        say(" rsp%+ld", (long)(rsp - fault_rsp));
}

static bool is_told_early(uint64_t rip)
{
    return rip == (uint64_t)fault_at_int1 && !MUNINN_RUNNING;
}

static void handler(int sig, siginfo_t *info, void *context)
{
    const greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t early = is_told_early(gregs[REG_RIP]);
    uint64_t rip = gregs[REG_RIP] + early, address = (uint64_t)info->si_addr + early;
    // Bit 0 of the error code, whether the page was present, is the kernel's own business.
    say("  signal %d code %d trap %lld err %llx", sig, info->si_code, gregs[REG_TRAPNO],
        gregs[REG_ERR] & ~1LL);
    long offset = (long)(rip - (uint64_t)fault_at);
    if (labs(offset) < 16)
        say(" rip%+ld", offset);
    else
        say(" rip=%lx", rip);
    if (address - (uint64_t)fault_at < 16)
        say(" addr=fault%+ld", (long)(address - (uint64_t)fault_at));
    else if (sig != SIGTRAP || address != rip)
        say(" addr=%lx", address);
    say(" flags %llx", gregs[REG_EFL] & 0xcd5);
    show_stack_pointer(gregs[REG_RSP]);
    for (int i = 0; i < REGISTER_COUNT; i++)
        if ((uint64_t)gregs[registers[i].greg] != registers[i].value)
            say(" %s=%llx", registers[i].name, gregs[registers[i].greg]);
    say("\n");
    siglongjmp(home, 1);
}

static void map_pages(void)
{
    int fd = memfd_create("short", 0), fixed = MAP_FIXED_NOREPLACE;
    char *base = (char *)BASE;
    int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | fixed;
    int any = PROT_READ | PROT_WRITE;
    CHECK(mmap(base, PAGE, any, anonymous, -1, 0) == base);
    CHECK(mmap(base + 2 * PAGE, PAGE, PROT_READ, anonymous, -1, 0) == base + 2 * PAGE);
    CHECK(mmap(base + 3 * PAGE, PAGE, PROT_NONE, anonymous, -1, 0) == base + 3 * PAGE);
    CHECK(mmap(base + 4 * PAGE, PAGE, any, anonymous, -1, 0) == base + 4 * PAGE);
    CHECK(mmap(base + 6 * PAGE, PAGE, any, MAP_SHARED | fixed, fd, 0) == base + 6 * PAGE);
    memcpy(base + 5 * PAGE - 3, "\xb8\x01\x02", 3); // mov eax, imm32, cut off
    mprotect(base + 4 * PAGE, PAGE, PROT_READ | PROT_EXEC);
    for (int i = 0; i < REGISTER_COUNT; i++)
        fault_values[i] = registers[i].value;
}

static void run_caught(size_t i)
{
    say("%s\n", faults[i].name);
    fault_at = faults[i].at;
    memset((void *)BASE, 0, PAGE);
    if (sigsetjmp(home, 1) == 0)
        faults[i].run();
    __asm__ volatile("cld; fninit; push $0x1f80; ldmxcsr (%%rsp); add $8, %%rsp" : : : "memory");
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    map_pages();
    bool caught = strcmp(argv[1], "caught") == 0;
    if (caught) {
        static char alternate[65536];
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        sigaltstack(&stack, NULL);
        static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            on_signal(signals[i], handler, SA_ONSTACK);
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (caught)
            run_caught(i);
        else if (strcmp(argv[1], faults[i].name) == 0)
            faults[i].run();
    }
    return 0;
}
