// SPDX-License-Identifier: MIT
//
// Compares the engine's call stack with what the C++ unwinder says, in every
// situation that moves stack pointers. One scenario per argument; prints how many
// checks disagreed. stacktest_check() is replaced by the tool of that name.
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>

extern "C" {
__attribute__((noipa)) int stacktest_check(void **frames, long count)
{
    (void)frames;
    return count < 0;
}
__attribute__((noipa)) long stacktest_depth(void)
{
    return -1;
}
}

static int wrong, checked;

// The frames above this function, as the unwinder finds them.
__attribute__((noinline)) static void check()
{
    void *frames[2048];
    int n = backtrace(frames, 2048);
    // The outermost frame of a thread or coroutine has a caller that is no call.
    while (n > 1 && !frames[n - 1])
        n--;
    // From two places by turns: what is remembered of a call is of one of them.
    bool agrees;
    if (__atomic_fetch_add(&checked, 1, __ATOMIC_RELAXED) % 3) {
        agrees = stacktest_check(frames + 1, n - 1);
        __asm__ volatile("" : "+r"(agrees));
    } else {
        agrees = stacktest_check(frames + 1, n - 1);
        __asm__ volatile("nop" : "+r"(agrees));
    }
    if (!agrees)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static int deep(int n)
{
    check();
    int r = n > 0 ? deep(n - 1) + 1 : 0;
    check();
    return r;
}

static void plain()
{
    deep(40);
    check();
}

static int compare(const void *a, const void *b)
{
    check();
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void callbacks()
{
    int v[24];
    for (int i = 0; i < 24; i++)
        v[i] = i * 7919 % 31;
    qsort(v, 24, sizeof v[0], compare);
    check();
}

static jmp_buf out;

__attribute__((noinline)) static void jump(int n)
{
    if (n == 0)
        longjmp(out, 1);
    jump(n - 1);
    check();
}

static void longjmps()
{
    for (int i = 0; i < 200; i++) {
        if (setjmp(out) == 0)
            jump(i % 17);
        check();
        deep(3);
    }
}

__attribute__((noinline)) static int thrower(int n)
{
    if (n == 0)
        throw std::runtime_error("x");
    int r = thrower(n - 1);
    check();
    return r;
}

static void exceptions()
{
    for (int i = 0; i < 60; i++) {
        try {
            thrower(i % 9);
        } catch (const std::exception &) {
            check();
            deep(2);
        }
    }
    check();
}

static void on_signal(int)
{
    deep(3);
}

static void raise_in(int flags)
{
    static char stack[65536];
    stack_t alt = {};
    alt.ss_sp = stack;
    alt.ss_size = sizeof stack;
    sigaltstack(&alt, nullptr);
    struct sigaction sa = {};
    sa.sa_handler = on_signal;
    sa.sa_flags = flags;
    sigaction(SIGUSR1, &sa, nullptr);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR1);
        check();
    }
    deep(5);
}

static void signals()
{
    raise_in(0);
}

static void alternate()
{
    raise_in(SA_ONSTACK);
}

static ucontext_t home, away[2];

static void expect(bool good)
{
    checked++;
    wrong += !good;
}

static void coroutine(int which)
{
    // The query itself, this function, and libc's end of a coroutine; natively -1.
    long depth = stacktest_depth();
    expect(depth >= 2 && depth <= 4);
    for (int i = 0; i < 10; i++) {
        expect(stacktest_depth() == depth);
        swapcontext(&away[which], i % 2 ? &away[!which] : &home);
    }
}

// A coroutine has no honest unwinder, so its depth is compared instead.
static void coroutines()
{
    static char stacks[2][65536];
    for (int i = 0; i < 2; i++) {
        getcontext(&away[i]);
        away[i].uc_stack.ss_sp = stacks[i];
        away[i].uc_stack.ss_size = sizeof stacks[i];
        away[i].uc_link = &home;
        makecontext(&away[i], reinterpret_cast<void (*)()>(coroutine), 1, i);
    }
    for (int i = 0; i < 8; i++) {
        swapcontext(&home, &away[i % 2]);
        check();
        deep(2);
    }
}

__attribute__((noinline)) static void tail_end(int)
{
    check();
}

__attribute__((noinline, optimize("O2"))) static void tail(int n)
{
    tail_end(n + 1);
}

static void tails()
{
    for (int i = 0; i < 50; i++) {
        tail(i);
        check();
    }
}

static void *thread_body(void *)
{
    for (int i = 0; i < 30; i++)
        deep(i % 12);
    exceptions();
    return nullptr;
}

static void threads()
{
    pthread_t t[4];
    for (auto &id : t)
        pthread_create(&id, nullptr, thread_body, nullptr);
    for (auto &id : t)
        pthread_join(id, nullptr);
    check();
}

__attribute__((noinline)) static long recurse(long n)
{
    // Deep down frames are left out, but a context never has fewer than it keeps.
    if (n % 100000 == 0 && n < 2900000 && stacktest_depth() < 1024)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    if (n == 0)
        return 0;
    long r = recurse(n - 1);
    __asm__ volatile("" : "+r"(r)); // or -O2 makes a loop of it
    return r + 1;
}

// Far deeper than the entries kept: the stack must be right again afterwards.
static void recursion()
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1u << 30);
    pthread_t t;
    pthread_create(&t, &attr, [](void *) -> void * {
        recurse(3000000);
        check();
        deep(4);
        return nullptr;
    }, nullptr);
    pthread_join(t, nullptr);
    check();
}

__attribute__((noinline)) static int wide(int n)
{
    volatile char room[3 << 20];
    room[0] = 1;
    check();
    int r = n > 0 ? wide(n - 1) : deep(1);
    check();
    return r + room[0];
}

__attribute__((noinline)) static int elastic(size_t bytes)
{
    volatile char *room = static_cast<volatile char *>(alloca(bytes));
    room[0] = 1;
    check();
    deep(1);
    return room[0];
}

// Frames of megabytes, and such as have another size each time.
static void large()
{
    for (int i = 0; i < 200; i++) {
        wide(i % 2);
        elastic(i % 3 == 0 ? 5 << 20 : i % 3 == 1 ? 300000 : 16);
    }
    check();
}

// Ways of which the second and third have frames of a size that changes: where a frame is smaller
// than it was, others stand where its caller was found.
static unsigned way_state = 1;
static void go_ways(int depth);
__attribute__((noinline)) static void way_fixed(int depth) { go_ways(depth); }
__attribute__((noinline)) static void way_aligned(int depth)
{
    alignas(64) volatile char room[8] = {};
    go_ways(depth + room[0]);
}
__attribute__((noinline)) static void way_elastic(int depth)
{
    volatile char *room = static_cast<volatile char *>(alloca(16 + 16 * (way_state >> 20) % 256));
    room[0] = 0;
    go_ways(depth + room[0]);
}

__attribute__((always_inline)) static inline void go_ways(int depth)
{
    static void (*const ways[])(int) = {way_fixed, way_aligned, way_elastic};
    way_state = way_state * 1103515245 + 12345;
    if ((way_state >> 16) % 2)
        check();
    if (depth > 0)
        ways[(way_state >> 18) % 3](depth - 1);
    __asm__ volatile("" ::: "memory"); // no tail call
}

static void ways()
{
    for (int i = 0; i < 1500; i++)
        go_ways(6);
}

static const struct {
    const char *name;
    void (*run)();
} scenarios[] = {
    {"plain", plain},         {"callbacks", callbacks}, {"longjmps", longjmps},
    {"exceptions", exceptions}, {"signals", signals},   {"alternate", alternate},
    {"coroutines", coroutines}, {"tails", tails},       {"threads", threads},
    {"recursion", recursion},   {"large", large},         {"ways", ways},
};

int main(int argc, char **argv)
{
    for (const auto &s : scenarios) {
        if (argc == 2 && strcmp(argv[1], s.name) == 0) {
            s.run();
            printf("%s: %d wrong of %d\n", s.name, wrong, checked);
            return wrong != 0 || checked == 0;
        }
    }
    return 2;
}
