// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: signals
//
// Handlers that do real work: system calls, maps, new code, and forks, in the middle of other
// calls.
#include "guest.h"
#include <sys/mman.h>
#include <sys/time.h>

static volatile sig_atomic_t hits, children, bad;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    if (hits == 100)
        return; // the timer is about to be stopped
    int saved = errno;
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, "\xb8\x2a\x00\x00\x00\xc3", 6);
    bad += ((int (*)(void))page)() != 42;
    munmap(page, 4096);
    if (hits % 10 == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(sig);
        int status;
        while (waitpid(child, &status, 0) == -1 && errno == EINTR)
            ;
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != sig;
        children++;
    }
    hits++;
    errno = saved;
}

static volatile pid_t forked = -1;

static void forking(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    forked = fork();
}

int main(void)
{
    on_signal(SIGALRM, handler, SA_RESTART);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    int ends[2];
    CHECK(pipe(ends) == 0);
    long wrong = 0, x = 0;
    while (hits < 100) {
        char buffer[64];
        memset(buffer, x & 0x7f, sizeof buffer);
        wrong += write(ends[1], buffer, sizeof buffer) != sizeof buffer;
        memset(buffer, 0, sizeof buffer);
        wrong += read(ends[0], buffer, sizeof buffer) != sizeof buffer;
        wrong += buffer[63] != (x & 0x7f);
        x++;
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    say("wrong %ld, bad %d, children %d\n", wrong, bad, children);

    // A child forked inside a handler returns from it on its own.
    on_signal(SIGUSR1, forking, 0);
    raise(SIGUSR1);
    if (forked == 0)
        _exit(21);
    wait_and_show("forked in the handler", forked);
    return 0;
}
