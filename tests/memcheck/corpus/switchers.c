// SPDX-License-Identifier: MIT
//
// Programs that change stacks at random, beside a model of what is defined: stacks side by side in one
// mapping, in a block of the heap, in a static array, in a live frame of another stack, and the
// thread's own; in every way in which a stack pointer gets there. Of each live frame each byte is
// defined exactly if it was written, all below the innermost frame of a stack that waits is
// undefined, and what lies between the stacks is as it was. SWITCHER_SEED, if it is set, is added to
// the seed of each case.
// BUILD -pthread
#include "corpus.h"

#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <valgrind/memcheck.h>

enum { STACKS = 10, EACH = 128 << 10, CANARY = 256, LIVE_MAX = 12, SIZE_MAX_BYTES = 5000, ROUNDS = 400 };

typedef struct Live { // a frame's bytes
    u8 *bytes;
    u32 size;
    jmp_buf target;
    u8 written[SIZE_MAX_BYTES];
} Live;

typedef struct Stack {
    u8 *low, *high;   // low: NULL where it is not the program's
    void *sp;         // where it waits
    bool started;     // then also in `resume`,
    bool by_jump;     // or there only
    jmp_buf resume;
    u32 live_count;
    Live live[LIVE_MAX];
} Stack;

static Stack *stacks;
static u8 *in_frame;    // stacks in the frame of the thread's own
static bool has_bounds; // that one's are known
static u32 current, rounds_left;
static u64 random_state;
static u8 *canaries[2 * STACKS];
static u32 canary_count;

static u32 pick(u32 below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (u32)(random_state >> 20) % below;
}

// ------------------------------------------------------------------- ways to another stack

// Each saves where it is at *rdi, and goes on at rsi.
#define WAY(name, load) \
    ".globl " #name "\n" #name ": pushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t" \
    "pushq %rbp\n\tmovq %rsp, (%rdi)\n\t" load "\n\tpopq %rbp\n\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\t" \
    "popq %r12\n\tpopq %rbx\n\tret\n"
__asm__(".local way_target\n.comm way_target, 8, 8\n.text\n"
        WAY(way_mov, "movq %rsi, %rsp")
        WAY(way_exchange, "xchgq %rsi, %rsp")
        WAY(way_pop, "pushq %rsi\n\tpopq %rsp")
        WAY(way_lea, "leaq -64(%rsi), %rax\n\tleaq 64(%rax), %rsp")
        WAY(way_indexed, "xorl %eax, %eax\n\tleaq (%rsi,%rax), %rsp")
        WAY(way_frame, "movq %rsi, %rbp\n\tmovq %rbp, %rsp")
        WAY(way_frame_lea, "leaq 40(%rsi), %rbp\n\tleaq -40(%rbp), %rsp")
        WAY(way_cmov, "cmpq %rsi, %rsi\n\tcmoveq %rsi, %rsp")
        WAY(way_memory, "movq %rsi, way_target(%rip)\n\tmovq way_target(%rip), %rsp")
        WAY(way_add, "subq %rsp, %rsi\n\taddq %rsi, %rsp")
        WAY(way_sub, "movq %rsp, %rax\n\tsubq %rsi, %rax\n\tsubq %rax, %rsp")
        // What `leave` pops is what `popq %rbp` would have.
        ".globl way_leave\nway_leave: pushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "pushq %rbp\n\tmovq %rsp, (%rdi)\n\tmovq %rsi, %rbp\n\tleave\n\tpopq %r15\n\tpopq %r14\n\t"
        "popq %r13\n\tpopq %r12\n\tpopq %rbx\n\tret\n");
typedef void Way(void **save, void *to);
extern Way way_mov, way_exchange, way_pop, way_lea, way_indexed, way_frame, way_frame_lea, way_cmov,
    way_memory, way_add, way_sub, way_leave;
static Way *const ways[] = {way_mov,  way_exchange, way_pop,    way_lea, way_indexed, way_frame, way_frame_lea,
                            way_cmov, way_memory,   way_leave,  way_add, way_sub};
// The last two look like the growth of a frame: from the thread's own stack, or to it, it is none if
// the tool knows its bounds.
enum { WAYS = sizeof(ways) / sizeof(ways[0]), WAYS_BY_LOAD = WAYS - 2 };

// ------------------------------------------------------------------- the model

static void check_live(const Live *live)
{
    static u8 v[SIZE_MAX_BYTES];
    CHECK(VALGRIND_GET_VBITS(live->bytes, v, live->size) == 1);
    for (u32 i = 0; i < live->size; i++) {
        if (v[i] != (live->written[i] ? 0 : 0xff)) {
            dprintf(2, "FAIL frame of %u bytes at %p, byte %u: %02x\n", live->size, (void *)live->bytes, i, v[i]);
            _exit(98);
        }
    }
}

// All below the red zone of a stack that waits.
static void check_below(const Stack *s)
{
    static u8 v[EACH];
    if (!s->low || s->by_jump)
        return;
    u32 size = (u32)((u8 *)s->sp - 128 - s->low);
    CHECK(VALGRIND_GET_VBITS(s->low, v, size) == 1);
    for (u32 i = 0; i < size; i++) {
        if (v[i] != 0xff) {
            dprintf(2, "FAIL %u bytes below the stack pointer of stack %u: %02x\n", size - i + 128,
                    (u32)(s - stacks), v[i]);
            _exit(98);
        }
    }
}

static void check_canaries(void)
{
    for (u32 i = 0; i < canary_count; i++) {
        CHECK(VALGRIND_CHECK_MEM_IS_DEFINED(canaries[i], CANARY) == 0);
        for (u32 k = 0; k < CANARY; k++)
            CHECK(canaries[i][k] == 0x5a);
    }
}

static NOINLINE void check(void)
{
    if (!RUNNING_ON_VALGRIND)
        return;
    for (u32 i = 0; i < STACKS; i++) {
        for (u32 k = 0; k < stacks[i].live_count; k++)
            check_live(&stacks[i].live[k]);
        if (i != current)
            check_below(&stacks[i]);
    }
    check_canaries();
}

// ------------------------------------------------------------------- what runs on them

static NOINLINE void yield(u32 to)
{
    Stack *s = &stacks[current], *t = &stacks[to];
    current = to;
    s->started = true;
    if (setjmp(s->resume) != 0)
        return;
    s->by_jump = t->by_jump || (t->started && pick(4) == 0);
    if (s->by_jump)
        longjmp(t->resume, 1);
    bool is_far = has_bounds && (s == stacks || t == stacks) && (!s->low || s->low < in_frame) &&
                  (!t->low || t->low < in_frame);
    ways[pick(is_far ? WAYS : WAYS_BY_LOAD)](&s->sp, t->sp);
}

// To a frame of this stack, which may have called others since.
static NOINLINE void jump_out(void)
{
    Stack *s = &stacks[current];
    if (s->live_count == 0)
        return;
    s->live_count = pick(s->live_count) + 1;
    longjmp(s->live[s->live_count - 1].target, 1);
}

static void on_signal(int number)
{
    u8 bytes[700];
    u8 *p = bytes;
    HIDE(p);
    for (u32 i = 0; i < 300; i++)
        p[i] = (u8)number;
    check();
    if (pick(3) == 0)
        jump_out();
}

static NOINLINE void frame(void);

static NOINLINE void act(void)
{
    for (u32 count = pick(7); count > 0 && rounds_left > 0; count--) {
        rounds_left--;
        switch (pick(12)) {
        case 0: case 1: case 2: case 3: case 4:
            if (stacks[current].live_count < LIVE_MAX)
                frame();
            break;
        case 5: case 6: case 7: case 8: {
            u32 to = pick(STACKS);
            if (to != current)
                yield(to);
            break;
        }
        case 9: check(); break;
        case 10: jump_out(); break;
        default: raise(pick(2) ? SIGUSR1 : SIGUSR2);
        }
    }
}

static void fill(Live *live, u8 *bytes, u32 size)
{
    u32 part = pick(4);
    live->bytes = bytes;
    live->size = size;
    for (u32 i = 0; i < size; i++) {
        live->written[i] = part == 0 ? pick(2) : part == 1 ? i < size / 2 : part == 2;
        if (live->written[i])
            ((volatile u8 *)bytes)[i] = (u8)i;
    }
}

// The frame's work. It may be gone on with after a jump, when what it had in registers is lost.
#define LIVE_FRAME(bytes, size) \
    do { \
        Live *live = &stacks[current].live[stacks[current].live_count++]; \
        fill(live, bytes, size); \
        setjmp(live->target); \
        act(); \
        stacks[current].live_count--; \
    } while (0)

static NOINLINE void small_frame(void)
{
    u8 room[96], *bytes = room;
    HIDE(bytes);
    LIVE_FRAME(bytes, sizeof(room));
}

static NOINLINE void large_frame(void)
{
    u8 room[3000], *bytes = room;
    HIDE(bytes);
    LIVE_FRAME(bytes, sizeof(room));
}

static NOINLINE void frame_that_grows(void)
{
    u32 size = 16 + pick(SIZE_MAX_BYTES - 16);
    u8 *bytes = (u8 *)alloca(size);
    HIDE(bytes);
    LIVE_FRAME(bytes, size);
}

static NOINLINE void frame(void)
{
    switch (pick(3)) {
    case 0: small_frame(); break;
    case 1: large_frame(); break;
    default: frame_that_grows();
    }
}

static void body(void)
{
    for (;;) {
        frame();
        yield(0);
    }
}

// ------------------------------------------------------------------- where they are

static void begin(u32 number, u8 *low)
{
    Stack *s = &stacks[number];
    VALGRIND_MAKE_MEM_UNDEFINED(low, EACH);
    memset(low, 0x5a, CANARY);
    memset(low + EACH - CANARY, 0x5a, CANARY);
    canaries[canary_count++] = low;
    canaries[canary_count++] = low + EACH - CANARY;
    s->low = low + CANARY;
    s->high = low + EACH - CANARY;
    void **sp = (void **)s->high;
    *--sp = NULL;
    *--sp = NULL;
    *--sp = (void *)body;
    for (u32 i = 0; i < 6; i++)
        *--sp = NULL;
    s->sp = sp;
}

static NOINLINE void run(u64 seed, u8 *memory)
{
    static u8 room[2 * EACH];
    u8 of_frame[2 * EACH];
    stack_t alternate = {.ss_sp = memory, .ss_size = EACH};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
    const char *more = getenv("SWITCHER_SEED");

    in_frame = of_frame;
    HIDE(in_frame);
    random_state = 0x9e3779b97f4a7c15 + seed * 7919 + (more ? strtoull(more, NULL, 10) : 0) * 1000003;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    CHECK(sigaltstack(&alternate, NULL) == 0);
    for (u32 i = 1; i < STACKS; i++)
        begin(i, i < 6 ? memory + i * EACH : i < 8 ? room + (i - 6) * EACH : in_frame + (i - 8) * EACH);
    rounds_left = ROUNDS;
    while (rounds_left > 0)
        frame();
    check();
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
}

static void prepare(bool bounds)
{
    has_bounds = bounds;
    stacks = (Stack *)calloc(STACKS, sizeof(Stack));
}

static u8 *map(u64 size)
{
    u8 *p = (u8 *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

CASE(stacks_in_a_mapping)
{
    // NOT-VALGRIND own-stacks
    prepare(true);
    run(1, map(6 * EACH));
}

CASE(stacks_in_the_heap)
{
    // NOT-VALGRIND own-stacks
    prepare(true);
    run(2, block(6 * EACH));
}

static void *in_thread(void *memory)
{
    run(3, (u8 *)memory);
    return NULL;
}

// The thread's own is one of them.
CASE(stacks_beside_that_of_a_thread)
{
    // NOT-VALGRIND own-stacks
    enum { OWN = 1 << 20 };
    pthread_t thread;
    pthread_attr_t attributes;
    prepare(true);
    u8 *all = map(6 * EACH + OWN);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, all + 6 * EACH, OWN);
    CHECK(pthread_create(&thread, &attributes, in_thread, all) == 0);
    pthread_join(thread, NULL);
}

static int in_clone(void *memory)
{
    run(4, (u8 *)memory);
    return 0;
}

CASE(stacks_above_that_of_a_clone)
{
    // NOT-VALGRIND own-stacks
    enum { OWN = 1 << 20 };
    int status;
    prepare(false);
    u8 *all = map(6 * EACH + OWN);
    memset(all, 7, 4096);
    VALGRIND_MAKE_MEM_UNDEFINED(all + 4096, OWN - 4096 - 64);
    int pid = clone(in_clone, all + OWN, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, all + OWN);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    for (u32 i = 0; i < 4096; i++)
        CHECK(all[i] == 7);
}
