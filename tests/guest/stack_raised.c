// SPDX-License-Identifier: MIT
// BUILD: -O1 -fno-optimize-sibling-calls
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// A program that raises the soft limit of its stack may use the stack at once: by recursion, by a
// system call that writes far below, and by a handler that runs there. Another process may raise it.
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { FRAME = 1 << 20 };

__attribute__((noinline)) static int descend(int depth)
{
    volatile char frame[FRAME];
    frame[0] = (char)depth;
    frame[FRAME - 1] = 1;
    return depth == 0 ? 0 : descend(depth - 1) + frame[FRAME - 1];
}

static volatile int handled;

static void on_usr1(int sig)
{
    char text[100];
    snprintf(text, sizeof text, "%d", sig);
    handled += text[0] == '1';
}

__attribute__((noinline)) static void use_far_below(int fd)
{
    char far[30 << 20]; // nothing of it has been touched
    say("read %zd", pread(fd, far, 5, 0));
    say(" of %.5s\n", far);
    raise(SIGUSR1); // 10
    say("handled %d\n", handled);
}

static void set_soft(pid_t pid, rlim_t soft)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    limit.rlim_cur = soft;
    CHECK(prlimit(pid, RLIMIT_STACK, &limit, NULL) == 0);
}

static void raised_by_another(void)
{
    int child = fork();
    if (child == 0) {
        set_soft(getppid(), 200 << 20);
        _exit(0);
    }
    wait_and_show("child", child);
    say("depth %d\n", descend(150));
}

static void beyond_the_limit(void)
{
    int child = fork();
    if (child == 0) {
        set_soft(0, 260 << 20);
        descend(300);
        _exit(0);
    }
    wait_and_show("beyond the limit", child);
}

int main(void)
{
    signal(SIGUSR1, on_usr1);
    int fd = memfd_create("text", 0);
    CHECK(write(fd, "hello", 5) == 5);
    set_soft(0, 64 << 20);
    use_far_below(fd);
    say("depth %d\n", descend(60));
    raised_by_another();
    beyond_the_limit();
    return 0;
}
