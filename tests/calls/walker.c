// SPDX-License-Identifier: MIT
//
//   walker list                             each row: its number, its name, why it is not asked
//   walker ask SEED TICKS LEFT_OUT ROW...   asks them; LEFT_OUT is a file with lines ROW QUESTION
//
// A line for each question, its parts divided by tabs: row, question, process, result, what memcheck
// has to find, what is wrong with what the call has written, and the question in words.
//
// Each row is asked by a process of its own, for a call may close descriptors, change limits or end
// its process. What waits is woken by a signal when a tenth of a second has passed without an
// answer, and killed after TICKS such signals; the next process goes on with the next question.
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muninn/client.h"
#include "walker.h"

enum { UNPRIVILEGED = 65534, TEXT_BYTES = 8192 };

typedef enum Stage { STAGE_NONE, STAGE_ASKED, STAGE_ANSWERED } Stage;

typedef struct Answer {
    _Atomic Stage stage;
    i32 pid;
    i64 result;
    char promises[TEXT_BYTES];
    char difference[128];
} Answer;

// Shared with the process that asks: it may lose all its descriptors.
static struct {
    _Atomic u32 progress;
    Answer answers[QUESTIONS_MAX];
} *shared;

static Question questions[QUESTIONS_MAX];
static bool is_left_out[ROWS_MAX][QUESTIONS_MAX];
static u64 seed;
static int tick_limit;

// ---- Asking ----------------------------------------------------------------

typedef i64 Stub(u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);

// A `syscall` for each question, so that a finding's address tells which one it belongs to.
static void stubs_make(void)
{
    static const u8 code[] = {
        0x48, 0x89, 0xf8,             // mov rax, rdi
        0x48, 0x89, 0xf7,             // mov rdi, rsi
        0x48, 0x89, 0xd6,             // mov rsi, rdx
        0x48, 0x89, 0xca,             // mov rdx, rcx
        0x4d, 0x89, 0xc2,             // mov r10, r8
        0x4d, 0x89, 0xc8,             // mov r8, r9
        0x4c, 0x8b, 0x4c, 0x24, 0x08, // mov r9, [rsp + 8]
        0x0f, 0x05,                   // syscall
        0xc3,
    };
    size_t size = QUESTIONS_MAX * STUB_BYTES;
    u8 *at = mmap((void *)STUBS, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    for (u32 i = 0; i < QUESTIONS_MAX; i++)
        memcpy(at + i * STUB_BYTES, code, sizeof(code));
    mprotect(at, size, PROT_READ | PROT_EXEC);
}

// Such objects outlive all processes.
static void remove_object(u64 nr, i64 id)
{
    if (id < 0)
        return;
    if (nr == NR_shmget)
        shmctl((int)id, IPC_RMID, NULL);
    if (nr == NR_semget)
        semctl((int)id, 0, IPC_RMID);
    if (nr == NR_msgget)
        msgctl((int)id, IPC_RMID, NULL);
}

static void ask(const Row *row, u32 number)
{
    static u8 claimed[CLAIMED_BYTES];
    const Question *question = &questions[number];
    Answer *answer = &shared->answers[number];
    SyscallCall call = call_of(row, question);
    u64 a[SYSCALL_ARGS];

    arena_fill(question->content);
    promises_put(&call, question, answer->promises, sizeof(answer->promises));
    answer->pid = getpid();
    memcpy(a, question->args, sizeof(a));
    if (question->undefined >= 0)
        (void)MUNINN_MAKE_MEM_UNDEFINED(&a[question->undefined], sizeof(u64));
    Stub *stub = (Stub *)(STUBS + number * STUB_BYTES);
    answer->stage = STAGE_ASKED;
    i64 result = stub(row->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    answer->result = result;
    answer->stage = STAGE_ANSWERED;
    shared->progress++;
    call.result = (u64)result;
    claims_put(&call, claimed);
    // A call that fails may have written something first; rows do not say how much.
    if (result >= 0)
        arena_find_difference(claimed, answer->difference, sizeof(answer->difference));
    remove_object(row->nr, result);
}

static void be_woken(int signal)
{
    (void)signal;
}

static void ignore_signals(void)
{
    static const int ignored[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGURG, SIGXFSZ, SIGXCPU,
                                  SIGPIPE, SIGHUP, SIGUSR2};
    struct sigaction action = { .sa_handler = be_woken };

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    sigaction(SIGUSR1, &action, NULL);
}

// An alternate stack's flags outlive execve: whoever has started us may have left some.
static void forget_alternate_stack(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    sigaltstack(&none, NULL);
}

static _Noreturn void ask_row(u32 row, u32 first, u32 count)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ignore_signals();
    forget_alternate_stack();
    close_range(0, ~0u, 0);
    for (int fd = 0; fd < 3; fd++)
        if (memfd_create("standard", 0) != fd)
            _exit(1);
    fds_open(); // they have the numbers that they had in the process that made the questions
    for (u32 i = first; i < count; i++)
        if (!is_left_out[row][i])
            ask(&rows[row], i);
    _exit(0);
}

// ---- Watching --------------------------------------------------------------

// Its status, or -1 if it was killed because it gave no answer.
static int wait_for(pid_t child)
{
    const struct timespec tick = {0, 100000000};
    sigset_t set;
    int status, ticks = 0;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (u32 seen = shared->progress; waitpid(child, &status, WNOHANG) == 0;) {
        if (sigtimedwait(&set, NULL, &tick) >= 0)
            continue;
        ticks = seen == shared->progress ? ticks + 1 : 0;
        seen = shared->progress;
        if (ticks == 0)
            continue;
        kill(child, ticks > tick_limit ? SIGKILL : SIGUSR1);
        if (ticks > tick_limit) {
            waitpid(child, &status, 0);
            return -1;
        }
    }
    return status;
}

static void print_answer(u32 row, u32 number)
{
    const Answer *answer = &shared->answers[number];

    printf("%u\t%u\t%d\t%lld\t%s\t%s\t%s\n", row, number, answer->pid, (long long)answer->result,
           answer->promises, answer->difference, questions[number].text);
}

// A question that ended its process has that for an answer. Returns the next one.
static u32 print_answers(u32 row, u32 first, u32 count, int status)
{
    for (u32 i = first; i < count; i++) {
        const Answer *answer = &shared->answers[i];
        if (is_left_out[row][i])
            continue;
        if (answer->stage == STAGE_ANSWERED) {
            print_answer(row, i);
            continue;
        }
        char why[32];
        snprintf(why, sizeof(why), status == -1 ? "waits" : "ends with %#x", (unsigned)status);
        printf("%u\t%u\t%d\t%s\t%s\t\t%s\n", row, i, answer->pid,
               answer->stage == STAGE_ASKED ? why : "not asked", answer->promises,
               questions[i].text);
        return i + 1;
    }
    return count;
}

static void ask_all(u32 row)
{
    u32 count = questions_make(&rows[row], seed, questions);

    memset(shared, 0, sizeof(*shared));
    for (u32 next = 0; next < count;) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            ask_row(row, next, count);
        next = print_answers(row, next, count, wait_for(child));
    }
}

// ---- The command -----------------------------------------------------------

static void list(void)
{
    for (u32 i = 0; i < row_count; i++)
        printf("%u\t%s\t%s\n", i, rows[i].name, rows[i].excluded ? rows[i].excluded : "");
}

static void read_left_out(const char *path)
{
    FILE *file = fopen(path, "r");
    u32 row, question;

    while (file && fscanf(file, "%u %u", &row, &question) == 2)
        if (row < ROWS_MAX && question < QUESTIONS_MAX)
            is_left_out[row][question] = true;
    if (file)
        fclose(file);
}

// False if the process keeps privileges with which a call could do harm.
static bool drop_privileges(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) ||
                           setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)))
        return false;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && geteuid() != 0;
}

int main(int argc, char **argv)
{
    sigset_t set;

    rows_list();
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list();
        return 0;
    }
    if (argc < 5 || strcmp(argv[1], "ask") != 0)
        return 2;
    seed = strtoull(argv[2], NULL, 0);
    tick_limit = atoi(argv[3]);
    read_left_out(argv[4]);
    if (!drop_privileges()) {
        fprintf(stderr, "walker: cannot drop privileges\n");
        return 1;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    fds_open();
    arena_make();
    stubs_make();
    for (int i = 5; i < argc; i++)
        ask_all((u32)atoi(argv[i]));
    return 0;
}
