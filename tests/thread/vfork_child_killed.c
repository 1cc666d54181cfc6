// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
//
// Children of vfork that are killed at any moment, most of all while they run code for the first
// time: neither their parent nor its other thread stops for that.
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>

enum { ROUNDS = 150, CODE = 64 * 1024, CHUNK = 16 };

static int orders[2];
static volatile bool over;
static volatile unsigned long beats;

// Kills the process whose pid it reads, after a moment that differs.
static void kill_on_order(void)
{
    pid_t pid;
    for (unsigned i = 0; read(orders[0], &pid, sizeof pid) == sizeof pid; i++) {
        int64_t end = now_ns() + i * 7919 % 400 * 1000;
        while (now_ns() < end)
            ;
        kill(pid, SIGKILL);
    }
    _exit(0);
}

// Short blocks, each a jump to the next, that nobody has run before; then it waits.
static unsigned char *new_code(void)
{
    unsigned char *code = mmap(NULL, CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memset(code, 0x90, CODE);
    for (int at = 0; at < CODE; at += CHUNK) {
        static const unsigned char call_next[] = {0x48, 0x8d, 0x05, 5, 0, 0, 0, 0xff, 0xe0};
        memcpy(code + at, call_next, sizeof call_next);
        code[at + 3] = CHUNK - 7;
    }
    code[CODE - CHUNK] = 0xeb; // jmp .
    code[CODE - CHUNK + 1] = 0xfe;
    return code;
}

static void *beat(void *arg)
{
    while (!over) {
        void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(page, 4096);
        beats++;
    }
    return arg;
}

int main(void)
{
    CHECK(pipe(orders) == 0);
    pid_t killer = fork();
    if (killer == 0) {
        close(orders[1]);
        kill_on_order();
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, beat, NULL) == 0);
    int killed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char *code = new_code();
        pid_t child = vfork();
        if (child == 0) {
            pid_t self = getpid();
            if (write(orders[1], &self, sizeof self) != sizeof self)
                _exit(1);
            ((void (*)(void))code)();
            _exit(2);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        munmap(code, CODE);
    }
    over = true;
    pthread_join(thread, NULL);
    say("%d children, %d killed, the other thread ran: %d\n", ROUNDS, killed, beats > 0);
    close(orders[1]);
    wait_and_show("killer", killer);
    return 0;
}
