// SPDX-License-Identifier: MIT
//
// The stack: dead frames, accesses below the stack pointer, and everything a program may do with it.
// BUILD -pthread
#include "corpus.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <valgrind/memcheck.h>

static NOINLINE u8 *dangling(void)
{
    volatile u8 frame[4096];
    u8 *p = (u8 *)frame + 100;
    frame[100] = 1;
    HIDE(p);
    return p;
}

CASE(read_dead_frame)
{
    u8 *p = dangling();
    READ4(p); // EXPECT memcheck invalid-read size=4 where=stack below=yes
}

CASE(write_dead_frame)
{
    u8 *p = dangling();
    WRITE8(p); // EXPECT memcheck invalid-write size=8 where=stack below=yes
}

static NOINLINE int write_live_frame(u8 *p)
{
    WRITE8(p);
    return 1;
}

CASE(write_live_frame_of_caller)
{
    u8 local[64];
    write_live_frame(local + 8);
    BRANCH(*(volatile u8 *)(local + 8));
}

CASE(read_below)
{
    __asm__ volatile("movq -4000(%%rsp), %%rax\n\tmovq %%rax, corpus_sink(%%rip)" : : : "rax", "memory");
    // EXPECT memcheck invalid-read size=8 where=stack below=yes
}

CASE(write_below)
{
    __asm__ volatile("movl $1, -4000(%%rsp)" : : : "memory");
    // EXPECT memcheck invalid-write size=4 where=stack below=yes
}

// What a `pop` finds that only lowers the stack is nobody's. What is read is.
__attribute__((used)) static void nothing(void)
{
}

CASE(popped_is_read)
{
    __asm__ volatile("subq $136, %%rsp\n\tpopq %%rcx\n\ttestl %%ecx, %%ecx\n\tje 1f\n1:\taddq $128, %%rsp" : : : "rcx", "cc", "memory");
    // EXPECT memcheck uninit-branch origin=stack
}

CASE(popped_is_discarded)
{
    u64 kept;
    __asm__ volatile("subq $136, %%rsp\n\tcall nothing\n\tpopq %%rcx\n\ttestl %%esp, %%esp\n\t"
                     "je 1f\n\txorl %%ecx, %%ecx\n1:\tmovq %%rcx, %0\n\taddq $128, %%rsp"
                     : "=r"(kept)
                     : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
    BRANCH(kept);
}

CASE(red_zone_is_ours)
{
    u64 v;
    __asm__ volatile("movq $7, -128(%%rsp)\n\tmovq -128(%%rsp), %0\n\tmovq $7, -8(%%rsp)" : "=r"(v) : : "memory");
    CHECK(v == 7);
}

CASE(undefined_in_red_zone)
{
    u64 v;
    __asm__ volatile("subq $1024, %%rsp\n\tmovq -64(%%rsp), %0\n\taddq $1024, %%rsp" : "=r"(v) : : "memory", "cc");
    BRANCH(v); // EXPECT memcheck uninit-branch
}

// Functions without a frame that use the red zone, called through pointers: none finds what another
// has left there.
__asm__(".text\n"
        "zone_writer: movq $7, -16(%rsp)\n\tmovq $8, -120(%rsp)\n\ttestl %edi, %edi\n\tjz 1f\n\t"
        "movl $1, %eax\n\tret\n1:\tmovl $2, %eax\n\tret\n"
        "zone_reader: movq -120(%rsp), %rax\n\tret\n"
        "zone_user: movq %rdi, -24(%rsp)\n\tmovq -24(%rsp), %rax\n\tret\n");
extern u64 zone_writer(u64), zone_reader(u64), zone_user(u64);

CASE(red_zone_of_another_leaf)
{
    u64 (*volatile functions[])(u64) = {zone_writer, zone_reader};
    CHECK(functions[0](1) == 1);
    u64 v = functions[1](0);
    BRANCH(v); // EXPECT memcheck uninit-branch
    CHECK(functions[0](0) == 2);
    v = functions[1](0);
    BRANCH(v); // EXPECT memcheck uninit-branch
}

CASE(red_zone_of_a_leaf)
{
    u64 (*volatile functions[])(u64) = {zone_user, zone_writer};
    for (u64 i = 0; i < 3; i++)
        CHECK(functions[0](i) == i && functions[1](i));
}

// Others that leave something 32 bytes below the stack pointer that they began with: with a frame,
// a long one, where the `ret` was executed before the zone was touched, and below what is popped.
__asm__(".text\n"
        "framed_writer: pushq %rbp\n\tmovq %rsp, %rbp\n\tmovq $7, -24(%rbp)\n\tpopq %rbp\n\tret\n"
        "long_writer: pushq %rbp\n\tmovq %rsp, %rbp\n\tmovq $7, -24(%rbp)\n\t"
        ".rept 700\n\taddl $1, %eax\n\t.endr\n\tpopq %rbp\n\tret\n"
        "late_writer: leaq 1f(%rip), %rax\n\ttestl %edi, %edi\n\tjnz 2f\n\tjmp *%rax\n"
        "2:\tmovq $7, -32(%rsp)\n\tjmp *%rax\n1:\tret\n"
        "saving_writer: pushq %rbx\n\tpushq %r12\n\tmovq $7, -16(%rsp)\n\tpopq %r12\n\tpopq %rbx\n\t"
        "ret\n"
        "frame_reader: subq $64, %rsp\n\tmovq 32(%rsp), %rax\n\taddq $64, %rsp\n\tret\n");
extern u64 framed_writer(u64), long_writer(u64), late_writer(u64), saving_writer(u64);
extern u64 frame_reader(u64);

static NOINLINE u64 read_behind(u64 (*volatile writer)(u64))
{
    u64 (*volatile reader)(u64) = frame_reader;
    writer(0);
    writer(1);
    return reader(0);
}

CASE(red_zone_left_by_a_frame)
{
    BRANCH(read_behind(framed_writer)); // EXPECT memcheck uninit-branch origin=stack
}

CASE(red_zone_left_by_a_long_frame)
{
    BRANCH(read_behind(long_writer)); // EXPECT memcheck uninit-branch origin=stack
}

CASE(red_zone_left_by_an_old_return)
{
    BRANCH(read_behind(late_writer)); // EXPECT memcheck uninit-branch origin=stack
}

CASE(red_zone_left_below_saved_registers)
{
    BRANCH(read_behind(saving_writer)); // EXPECT memcheck uninit-branch origin=stack
}

static NOINLINE void leaf_of_c(void)
{
    volatile u64 a = 1, b = 2, c = 3;
    (void)a;
    (void)b;
    (void)c;
}

static NOINLINE u64 after_leaf(int sets);

CASE(red_zone_left_by_c)
{
    leaf_of_c();
    CHECK(after_leaf(corpus_sink == 99) == 1);
}

static NOINLINE u64 after_leaf(int sets)
{
    volatile u64 x, y, z;
    if (sets)
        x = y = z = 1;
    BRANCH(x); // EXPECT memcheck uninit-branch origin=stack
    BRANCH(y); // EXPECT memcheck uninit-branch origin=stack
    BRANCH(z); // EXPECT memcheck uninit-branch origin=stack
    leaf_of_c(); // so that this is none
    return 1;
}

// The `ret` behind a large leaf is another function's, and leaves nothing of the leaf's: here it would
// be other memory, below a stack that is in the midst of it.
__asm__(".text\n"
        "large_leaf: pushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $4000, %rsp\n\tmovq $1, -64(%rsp)\n\t"
        "leave\n\tret\n"
        "small_leaf: movl $5, %eax\n\tret\n"
        "jumping_leaf: leaq 1f(%rip), %rax\n\tpushq %rbp\n\tmovq %rsp, %rbp\n\t"
        "subq $4000, %rsp\n\tmovq $1, -64(%rsp)\n\tleave\n\tjmp *%rax\n"
        "other_leaf: movl $5, %eax\n\tret\n1:\tret\n");
extern u64 large_leaf(u64), small_leaf(u64), jumping_leaf(u64), other_leaf(u64);

static NOINLINE void run_below(u64 (*volatile leaf)(u64), u64 (*next)(u64))
{
    static u8 memory[16384];
    u64 result, sum = 0;
    memset(memory, 7, sizeof(memory));
    leaf(0);
    __asm__ volatile("movq %%rsp, %%r12\n\tmovq %1, %%rsp\n\tcall *%2\n\tmovq %%r12, %%rsp"
                     : "=a"(result) : "r"(memory + 12288), "r"(next) : "r12", "memory", "cc");
    for (unsigned i = 0; i < 12000; i++)
        sum += memory[i];
    CHECK(result == 5 && sum == 7 * 12000);
}

CASE(red_zone_is_not_of_the_next_function)
{
    run_below(large_leaf, small_leaf);
}

CASE(red_zone_is_not_of_the_next_behind_a_jump)
{
    run_below(jumping_leaf, other_leaf);
}

static NOINLINE int depth(int n)
{
    volatile char pad[200];
    pad[n % 200] = n;
    return n ? depth(n - 1) + 1 : pad[0];
}

CASE(deep_recursion)
{
    CHECK(depth(5000) == 5000);
}

static NOINLINE u64 fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

CASE(fibonacci_recursion)
{
    CHECK(fibonacci(15) == 610);
}

// A frame may be left in many ways; each of these has stored 480 bytes above the lower end of one of
// 1000 bytes.
__asm__(".text\n"
        "left_by_lea:\n\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $992, %rsp\n\tmovq $7, 480(%rsp)\n\t"
        "leaq -8(%rbp), %rsp\n\tpopq %rdx\n\tmovq (%rbp), %rbp\n\taddq $8, %rsp\n\tret\n"
        "left_by_indexed_lea:\n\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $992, %rsp\n\tmovq $7, 480(%rsp)\n\t"
        "xorl %edx, %edx\n\tleaq (%rbp,%rdx), %rsp\n\tpopq %rbp\n\tret\n"
        "left_by_a_copy:\n\tmovq %rsp, %rdx\n\tsubq $1000, %rsp\n\tmovq $7, 480(%rsp)\n\tmovq %rdx, %rsp\n\tret\n"
        "left_by_lea_of_a_copy:\n\tleaq -8(%rsp), %rdx\n\tsubq $1000, %rsp\n\tmovq $7, 480(%rsp)\n\t"
        "leaq 8(%rdx), %rsp\n\tret\n"
        "left_by_a_sum:\n\tmovl $1000, %edx\n\tsubq %rdx, %rsp\n\tmovq $7, 480(%rsp)\n\taddq %rdx, %rsp\n\tret\n"
        "left_by_a_difference:\n\tmovq $-1000, %rdx\n\taddq %rdx, %rsp\n\tmovq $7, 480(%rsp)\n\tsubq %rdx, %rsp\n\tret\n"
        "left_by_exchange:\n\tmovq %rsp, %rdx\n\tsubq $1000, %rsp\n\tmovq $7, 480(%rsp)\n\txchgq %rdx, %rsp\n\tret\n"
        "left_by_pop:\n\tmovq %rsp, %rdx\n\tsubq $992, %rsp\n\tpushq %rdx\n\tmovq $7, 480(%rsp)\n\tpopq %rsp\n\tret\n");

#define CALL_AND_ASK(function) \
    __asm__ volatile("subq $256, %%rsp\n\tcall " #function "\n\tsubq $1024, %%rsp\n\t" \
                     "movq 496(%%rsp), %%rax\n\taddq $1280, %%rsp\n\t" \
                     "testq %%rax, %%rax\n\tje 1f\n1:" \
                     : : : "rax", "rdx", "cc", "memory")

CASE(frame_left_by_lea)
{
    CALL_AND_ASK(left_by_lea); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_indexed_lea)
{
    CALL_AND_ASK(left_by_indexed_lea); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_a_copy)
{
    CALL_AND_ASK(left_by_a_copy); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_lea_of_a_copy)
{
    CALL_AND_ASK(left_by_lea_of_a_copy); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_a_sum)
{
    CALL_AND_ASK(left_by_a_sum); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_a_difference)
{
    CALL_AND_ASK(left_by_a_difference); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_exchange)
{
    CALL_AND_ASK(left_by_exchange); // EXPECT memcheck uninit-branch
}

CASE(frame_left_by_pop)
{
    CALL_AND_ASK(left_by_pop); // EXPECT memcheck uninit-branch
}

CASE(large_frame)
{
    volatile char frame[300000];
    for (int i = 0; i < 300000; i += 100)
        frame[i] = 1;
    BRANCH(frame[200000]);
}

CASE(large_frame_undefined)
{
    volatile char frame[300000];
    frame[0] = 1;
    BRANCH(frame[200000]); // EXPECT memcheck uninit-branch origin=stack
}

CASE(alloca_in_a_loop)
{
    for (int i = 1; i < 100; i++) {
        u8 *p = (u8 *)__builtin_alloca(i);
        memset(p, i, i);
        HIDE(p);
        BRANCH(p[i - 1]);
    }
}

CASE(variable_length_array)
{
    volatile int n = 100;
    int a[n];
    for (int i = 0; i < n; i++)
        a[i] = i;
    int *p = a;
    HIDE(p);
    BRANCH(p[50]);
}

static jmp_buf environment;

static NOINLINE void jump_out(int n)
{
    volatile char pad[500];
    pad[0] = n;
    if (n == 0)
        longjmp(environment, 3);
    jump_out(n - 1);
}

CASE(setjmp_longjmp)
{
    volatile int rounds = 0;
    volatile char local[100];
    memset((char *)local, 0, 100);
    if (setjmp(environment) == 0 || ++rounds < 5)
        jump_out(10);
    BRANCH(local[50]);
    CHECK(depth(20) == 20);
}

CASE(stack_is_dead_after_longjmp)
{
    static u8 *volatile left;
    if (setjmp(environment) == 0) {
        u8 *p = (u8 *)&p;
        left = p - 3000;
        jump_out(10);
    }
    READ4(left); // EXPECT memcheck invalid-read size=4 where=stack below=yes
}

static volatile int signals;
static volatile u64 seen;

static void on_signal(int number)
{
    volatile char frame[1000];
    frame[500] = number;
    signals += frame[500] == SIGUSR1;
}

CASE(signal_handler)
{
    volatile int local[64];
    for (int i = 0; i < 64; i++)
        local[i] = i;
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
    for (int i = 0; i < 64; i++)
        CHECK(local[i] == i);
    CHECK(signals == 10);
}

static void on_info(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = (ucontext_t *)context;
    BRANCH(info->si_signo);
    BRANCH(info->si_pid);
    BRANCH(u->uc_mcontext.gregs[REG_RIP]);
    signals++;
}

CASE(signal_with_info)
{
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    CHECK(signals == 1);
}

// What the kernel writes for a handler is left with it.
static NOINLINE u64 over_the_frame_of_a_signal(void)
{
    u64 room[256];
    u64 *p = room + 64;
    HIDE(p);
    return *p;
}

CASE(signal_frame_is_left)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    BRANCH(over_the_frame_of_a_signal()); // EXPECT memcheck uninit-branch origin=stack
}

CASE(signal_on_its_own_stack)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    CHECK(signals == 2);
}

static void on_undefined(int number);
CASE(undefined_in_a_handler)
{
    signal(SIGUSR1, on_undefined);
    raise(SIGUSR1);
}
static void on_undefined(int number)
{
    volatile char frame[1000];
    BRANCH(frame[500]); // EXPECT memcheck uninit-branch
}

static sigjmp_buf from_handler;
static void jump_from_handler(int number)
{
    siglongjmp(from_handler, 1);
}

CASE(siglongjmp_out_of_a_handler)
{
    volatile int faults = 0;
    signal(SIGSEGV, jump_from_handler);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(from_handler, 1) == 0)
            raise(SIGSEGV);
        else
            faults++;
    }
    CHECK(faults == 3);
    CHECK(depth(30) == 30);
}

static ucontext_t main_context, coroutine_context;
static volatile int steps;

static void coroutine(void)
{
    volatile char local[500];
    memset((char *)local, 0, 500);
    for (int i = 0; i < 5; i++) {
        BRANCH(local[i]);
        steps++;
        swapcontext(&coroutine_context, &main_context);
    }
}

CASE(coroutines_on_heap_stacks)
{
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = calloc(1, 256 << 10);
    coroutine_context.uc_stack.ss_size = 256 << 10;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    for (int i = 0; i < 5; i++)
        swapcontext(&main_context, &coroutine_context);
    CHECK(steps == 5);
}

CASE(callee_saved_registers_spilled_undefined)
{
    u64 *p = (u64 *)block(8);
    u64 v = *(volatile u64 *)p;
    __asm__ volatile("movq %0, %%rbx\n\tmovq %0, %%r12" : : "r"(v) : "rbx", "r12");
    CHECK(depth(3) == 3);
}

CASE(big_arguments)
{
    char text[200];
    CHECK(snprintf(text, sizeof text, "%d%d%d%d%d%d%d%d%d%d%s%f%f%f%f%f%f%f%f%f", 1, 2, 3, 4, 5, 6,
                   7, 8, 9, 10, "x", 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 84);
}

// Threads in one mapping with data and with a stack that code switches to by itself, as Erlang's does.
enum { PIECE = 256 << 10 };
static u8 *own_stack, *beside;

static void *with_own_stack(void *unused)
{
    (void)unused;
    VALGRIND_MAKE_MEM_UNDEFINED(beside, 4096);
    memset(beside + 8, 7, 4000);
    __asm__ volatile("movq %%rbp, %%r12\n\tmovq %%rsp, %%rbp\n\tmovq %0, %%rsp\n\t"
                     "pushq $1\n\tmovq $9, (%1)\n\tcmpq $9, (%1)\n\tje 1f\n\tnop\n1:\tpopq %%rax\n\t"
                     "movq %%rbp, %%rsp\n\tmovq %%r12, %%rbp"
                     : : "r"(own_stack), "r"(beside) : "rax", "r12", "memory", "cc");
    BRANCH(*(volatile u8 *)beside);
    BRANCH(*(volatile u8 *)(beside + 4000));
    return NULL;
}

// One of three pieces becomes the thread's stack.
static void run_in_piece(unsigned number)
{
    pthread_t thread;
    pthread_attr_t attributes;
    u8 *all = mmap(NULL, 3 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    own_stack = all + (number ? 1 : 3) * PIECE;
    beside = all + PIECE + 64;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, all + number * PIECE, PIECE);
    CHECK(pthread_create(&thread, &attributes, with_own_stack, NULL) == 0);
    pthread_join(thread, NULL);
}

CASE(own_stack_below_that_of_the_thread)
{
    // NOT-VALGRIND own-stacks
    run_in_piece(2);
    BRANCH(*(volatile u8 *)(beside + 4090)); // EXPECT memcheck uninit-branch origin=client
}

CASE(own_stack_above_that_of_the_thread)
{
    // NOT-VALGRIND own-stacks
    run_in_piece(0);
    BRANCH(*(volatile u8 *)(beside + 4090)); // EXPECT memcheck uninit-branch origin=client
}

static NOINLINE u8 *forbid_a_part(void)
{
    u8 room[256], *p = room + 64;
    HIDE(p);
    memset(p, 1, 100);
    (void)VALGRIND_MAKE_MEM_NOACCESS(p, 100);
    return p;
}

static NOINLINE void use_the_same(void)
{
    u8 room[256], *p = room;
    HIDE(p);
    for (u32 i = 0; i < sizeof room; i++)
        WRITE1(p + i);
    memset(p, 2, sizeof room);
    CHECK(strnlen((char *)p, sizeof room) == sizeof room);
}

// A function's frame is as usable as any, whatever the one before it has forbidden there.
CASE(forbidden_until_its_frame_is_left)
{
    for (u32 i = 0; i < 3; i++) {
        forbid_a_part();
        use_the_same();
    }
}

CASE(forbidden_in_its_frame)
{
    u8 room[256], *p = room + 64;
    HIDE(p);
    memset(p, 1, 100);
    (void)VALGRIND_MAKE_MEM_NOACCESS(p, 100);
    use_the_same();
    WRITE1(p + 50); // EXPECT memcheck invalid-write size=1
    READ8(p + 90); // EXPECT memcheck invalid-read size=8
    memset(p + 99, 0, 2); // EXPECT memcheck invalid-write
    (void)VALGRIND_MAKE_MEM_DEFINED(p, 100);
    READ8(p + 90);
}

// Threads of a bare clone, which is told a stack pointer only.
enum { CLONE_ALL = 4 << 20 };
static u8 *around;

static NOINLINE u64 of_fresh_frame(void)
{
    u64 room[64];
    u64 *p = room + 32;
    HIDE(p);
    return *p;
}

static void clone_and_wait(int (*work)(void *), u8 *top)
{
    int status, pid = clone(work, top, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, NULL);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static NOINLINE u8 *dead_frame_of_clone(void)
{
    volatile u8 frame[256];
    u8 *p = (u8 *)frame;
    for (u32 i = 0; i < 256; i++)
        frame[i] = 1;
    HIDE(p);
    return p;
}

static int amid_other_things(void *unused)
{
    (void)unused;
    for (u32 i = 0; i < 3; i++) {
        u8 *p = around + i * (1 << 20) + 5000;
        BRANCH(p[7]); // fresh memory, not a stack's
        p[8] = 1;
        memset(p + 100, 7, 1000);
        memcpy(p + 2000, p + 99, 1000);
        CHECK(getcwd((char *)p + 4000, 4096) != NULL);
        BRANCH(p[2000]);
    }
    return 0;
}

CASE(clone_in_the_middle_of_a_mapping)
{
    // NOT-VALGRIND own-stacks
    around = (u8 *)mmap(NULL, CLONE_ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(around, 7, 100);
    clone_and_wait(amid_other_things, around + (5 << 19));
    BRANCH(around[99]);
    BRANCH(around[5 << 18]);
    BRANCH(around[CLONE_ALL - 1]);
}

// As it looks, the mapping is the stack's. It is not.
CASE(clone_at_the_end_of_a_mapping_of_other_things)
{
    // NOT-VALGRIND own-stacks
    around = (u8 *)mmap(NULL, CLONE_ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    clone_and_wait(amid_other_things, around + CLONE_ALL);
    BRANCH(around[5 << 18]);
}

static u8 of_program[3][1 << 16];

static int beside_variables(void *unused)
{
    (void)unused;
    BRANCH(of_program[0][77]);
    of_program[0][78] = 1;
    return 0;
}

CASE(clone_in_a_static_array)
{
    // NOT-VALGRIND own-stacks
    clone_and_wait(beside_variables, of_program[2]);
    BRANCH(of_program[0][77]);
    BRANCH(of_program[2][77]);
}

static int in_its_own(void *unused);
CASE(clone_with_a_stack_of_its_own)
{
    // NOT-VALGRIND own-stacks
    around = (u8 *)mmap(NULL, CLONE_ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    clone_and_wait(in_its_own, around + CLONE_ALL);
}
static int in_its_own(void *unused)
{
    (void)unused;
    BRANCH(of_fresh_frame()); // EXPECT memcheck uninit-branch origin=stack
    READ4(dead_frame_of_clone()); // EXPECT memcheck invalid-read size=4 where=stack below=yes
    return 0;
}
