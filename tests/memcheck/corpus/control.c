// SPDX-License-Identifier: MIT
//
// Processes and libraries: fork, exec, dlopen, exits of every kind. Nothing here is an error unless
// the case says so.
// BUILD -rdynamic
#include "corpus.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

static NOINLINE int wait_for(pid_t pid)
{
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

CASE(fork_and_exit)
{
    u8 *p = zeroed_block(10);
    pid_t pid = fork();
    if (pid == 0)
        _exit(p[3] + 4);
    CHECK(WEXITSTATUS(wait_for(pid)) == 4);
    BRANCH(p[3]);
}

CASE(fork_child_uses_heap)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 100; i++)
            free(malloc(i));
        _exit(0);
    }
    CHECK(wait_for(pid) == 0);
}

CASE(exec_true)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    CHECK(wait_for(pid) == 0);
}

CASE(exec_over_itself)
{
    execl("/bin/true", "true", (char *)NULL);
}

CASE(system_and_popen)
{
    CHECK(system("true") == 0);
    FILE *f = popen("echo hello", "r");
    char line[20];
    CHECK(fgets(line, sizeof line, f) && strcmp(line, "hello\n") == 0);
    CHECK(pclose(f) == 0);
}

int exported = 5;

CASE(dlopen_a_library)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(library);
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    CHECK(cosine && cosine(0) == 1);
    CHECK(dlclose(library) == 0);
}

CASE(dlopen_twice_and_lookup_by_name)
{
    void *self = dlopen(NULL, RTLD_NOW);
    CHECK(dlsym(self, "exported") == &exported);
    CHECK(!dlopen("/nonexistent.so", RTLD_NOW));
    CHECK(dlerror());
    for (int i = 0; i < 3; i++) {
        void *library = dlopen("libz.so.1", RTLD_LAZY);
        if (library)
            dlclose(library);
    }
}

CASE(exit_three)
{
    // EXITS 3
    exit(3);
}

CASE(abort_kills)
{
    // DIES SIGABRT
    abort();
}

CASE(killed_by_a_signal)
{
    // DIES SIGTERM
    raise(SIGTERM);
}

static void at_exit(void)
{
    u8 *p = zeroed_block(4);
    BRANCH(p[2]);
    free(p);
}

CASE(atexit_handlers)
{
    atexit(at_exit);
    exit(0);
}

static void at_exit_wrong(void);
CASE(atexit_handler_with_a_bug)
{
    atexit(at_exit_wrong);
    exit(0);
}
static void at_exit_wrong(void)
{
    u8 *p = zeroed_block(4);
    READ1(p + 4); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
    free(p);
}

static NOINLINE int sum_of(int count, ...)
{
    va_list list;
    va_start(list, count);
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += va_arg(list, int);
    va_end(list);
    return sum;
}

CASE(variadic)
{
    CHECK(sum_of(12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) == 78);
}

static NOINLINE double mixed(int count, ...)
{
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += va_arg(list, int) + va_arg(list, double);
    va_end(list);
    return sum;
}

CASE(variadic_doubles)
{
    CHECK(mixed(10, 1, .5, 2, .5, 3, .5, 4, .5, 5, .5, 6, .5, 7, .5, 8, .5, 9, .5, 10, .5) == 60);
}

static NOINLINE void one_too_many(int count, ...);
CASE(variadic_undefined_argument)
{
    int *p = (int *)block(4);
    one_too_many(1, *(volatile int *)p);
}
static NOINLINE void one_too_many(int count, ...)
{
    va_list list;
    va_start(list, count);
    int v = va_arg(list, int);
    va_end(list);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-9
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

CASE(sorting_and_searching)
{
    int *a = (int *)block(500 * sizeof *a), key = 250;
    for (int i = 0; i < 500; i++)
        a[i] = i * 77 % 500;
    qsort(a, 500, sizeof *a, compare);
    HIDE(a);
    CHECK(a[0] == 0 && a[499] == 499);
    CHECK(bsearch(&key, a, 500, sizeof *a, compare) == a + 250);
    free(a);
}

static int compare_undefined(const void *a, const void *b);
CASE(sorting_undefined)
{
    int *a = (int *)block(4 * sizeof *a);
    a[0] = 3, a[1] = 1, a[3] = 2;
    qsort(a, 4, sizeof *a, compare_undefined);
    free(a);
}
static int compare_undefined(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    BRANCH(x > y); // EXPECT memcheck uninit-branch origin=heap:-8
    return 0;
}

CASE(time_and_locale)
{
    time_t now = time(NULL);
    struct tm *t = localtime(&now);
    char text[64];
    CHECK(strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", t) == 19);
    setlocale(LC_ALL, "C.UTF-8");
    CHECK(strcoll("a", "b") < 0);
    CHECK(snprintf(text, sizeof text, "%'d %Lf %g", 1234567, 1.5L, 1e-7) > 0);
}

CASE(environment)
{
    CHECK(setenv("CORPUS", "1", 1) == 0);
    CHECK(strcmp(getenv("CORPUS"), "1") == 0);
    char *p = (char *)block(20);
    strcpy(p, "CORPUS=2");
    CHECK(putenv(p) == 0);
    CHECK(strcmp(getenv("CORPUS"), "2") == 0);
}

CASE(scanf_and_files)
{
    int a = 0;
    char word[20];
    double d = 0;
    CHECK(sscanf("12 word 3.5", "%d %19s %lf", &a, word, &d) == 3);
    CHECK(a == 12 && d == 3.5 && strcmp(word, "word") == 0);
    FILE *f = tmpfile();
    CHECK(f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "line %d\n", i);
    rewind(f);
    char line[64];
    int lines = 0;
    while (fgets(line, sizeof line, f))
        lines++;
    CHECK(lines == 1000);
    fclose(f);
}

CASE(errno_and_messages)
{
    CHECK(close(-1) == -1 && errno == EBADF);
    BRANCH(strlen(strerror(errno)));
}

// Functions that return flags, as no C compiler makes them, with registers that are undefined.
__asm__(".text\n"
        "says_carry: movq (%rsi), %r10\n\tmovl $3, %edx\n\tstc\n\tret\n"
        "says_none: pushq %rbp\n\tmovq %rsp, %rbp\n\tmovq (%rsi), %r10\n\tmovl $3, %edx\n\t"
        "clc\n\tpopq %rbp\n\tret\n"
        "says_carry_late: pushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $16, %rsp\n\tmovq (%rsi), %r10\n\t"
        "stc\n\tmovq %rbp, %rsp\n\tpopq %rbp\n\tret\n"
        "says_less: movq (%rsi), %r10\n\tmovl $3, %edx\n\tcmpl $5, %edx\n\tret\n");

#define FLAG_OF(function, set, p) \
    __extension__({ \
        u8 flag; \
        __asm__ volatile("subq $256, %%rsp\n\tcall " #function "\n\t" set " %0\n\t" \
                         "leaq 256(%%rsp), %%rsp" : "=&r"(flag) : "S"(p) \
                         : "rcx", "rdx", "r10", "memory", "cc"); \
        flag; \
    })

CASE(flags_are_returned)
{
    u64 *places[] = {(u64 *)zeroed_block(8), (u64 *)block(8)};
    for (int i = 0; i < 6; i++) {
        u64 *p = places[i & 1];
        CHECK(FLAG_OF(says_carry, "setc", p) == 1);
        CHECK(FLAG_OF(says_none, "setc", p) == 0);
        CHECK(FLAG_OF(says_carry_late, "setc", p) == 1);
        CHECK(FLAG_OF(says_less, "setl", p) == 1);
    }
}

// What a constant place says is expected to stay (a PLT), and may change all the same.
__asm__(".text\n"
        "gives_one: movl $1, %eax\n\tret\n"
        "gives_two: movl $2, %eax\n\tret\n"
        "jumps_there: jmp *constant_place(%rip)\n"
        ".data\n"
        ".balign 8\n"
        "constant_place: .quad gives_one\n"
        "other_place: .quad gives_two\n"
        ".text\n");

#define CALL_THERE(how) \
    __extension__({ \
        u64 got; \
        __asm__ volatile("subq $256, %%rsp\n\tcall " how "\n\taddq $256, %%rsp" \
                         : "=a"(got) : : "rcx", "r11", "memory", "cc"); \
        got; \
    })

CASE(a_constant_place_says_something_else)
{
    for (u64 i = 0; i < 8; i++) {
        CHECK(CALL_THERE("*constant_place(%%rip)") == 1 + i % 2);
        CHECK(CALL_THERE("jumps_there") == 1 + i % 2);
        __asm__ volatile("movq constant_place(%%rip), %%rax\n\tmovq other_place(%%rip), %%rcx\n\t"
                         "movq %%rcx, constant_place(%%rip)\n\tmovq %%rax, other_place(%%rip)"
                         : : : "rax", "rcx", "memory");
    }
}
