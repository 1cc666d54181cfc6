// SPDX-License-Identifier: MIT
//
// Signals in the middle of wrapped calls: a handler that calls wrapped functions leaves no trace,
// and a function whose first instruction is repeated after its fault is called once.
// STDOUT: interrupted: every call was wrapped once
// STDOUT: repeated after a fault: 5 in 1 call
// STDOUT: a jump of its own to the entry: 1000 in 1 call
// ALONE: the incumbent takes each arrival at the entry for a call
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include <valgrind/valgrind.h>

#define KEEP __attribute__((noinline, noipa))
enum { SIGNALS = 300 };

static volatile int handled;

KEEP int in_main(int a)
{
    return a;
}

KEEP int in_handler(int a)
{
    return -a;
}

#define WRAP(name, more)                               \
    int I_WRAP_SONAME_FNNAME_ZU(NONE, name)(int a)     \
    {                                                  \
        OrigFn original;                               \
        int result;                                    \
        VALGRIND_GET_ORIG_FN(original);                \
        CALL_FN_W_W(result, original, a);              \
        return result + (more);                        \
    }
WRAP(in_main, 1)
WRAP(in_handler, 1000)

static volatile int wrong;
static void on_signal(int sig)
{
    (void)sig;
    wrong += in_handler(7) != 993;
    handled++;
}

// One signal at a time, so that a slow machine makes progress between them.
static void *interrupt(void *thread)
{
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        while (handled == i)
            sched_yield();
    }
    return NULL;
}

static void be_interrupted(void)
{
    pthread_t self = pthread_self(), other;
    signal(SIGUSR1, on_signal);
    pthread_create(&other, NULL, interrupt, &self);
    for (int i = 0; handled < SIGNALS; i++)
        wrong += in_main(i) != i + 1;
    pthread_join(other, NULL);
    printf("interrupted: %s\n", wrong ? "some calls were not as wrapped once" :
                                        "every call was wrapped once");
}

// mov (%rdi),%eax ; ret
long faults(int *p);
__asm__(".globl faults\n.type faults,@function\n"
        "faults: mov (%rdi),%eax\n ret\n.size faults,.-faults\n");
static int fault_calls;
long I_WRAP_SONAME_FNNAME_ZU(NONE, faults)(int *p)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    fault_calls++;
    CALL_FN_W_W(result, original, p);
    return result;
}

static char *page;
static void on_fault(int sig)
{
    (void)sig;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    *(int *)page = 5;
}

// add $1,%eax ; sub $1,%rdi ; jne to the entry ; ret
long loops(long times, long unused, long also, long from);
__asm__(".globl loops\n.type loops,@function\n"
        "loops: add $1,%rcx\n sub $1,%rdi\n jne loops\n mov %rcx,%rax\n ret\n"
        ".size loops,.-loops\n");
static int loop_calls;
long I_WRAP_SONAME_FNNAME_ZU(NONE, loops)(long times, long unused, long also, long from)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    loop_calls++;
    CALL_FN_W_WWWW(result, original, times, unused, also, from);
    return result;
}

int main(void)
{
    be_interrupted();
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, on_fault);
    long value = faults((int *)page);
    printf("repeated after a fault: %ld in %d call\n", value, fault_calls);
    value = loops(1000, 0, 0, 0);
    printf("a jump of its own to the entry: %ld in %d call\n", value, loop_calls);
    return 0;
}
