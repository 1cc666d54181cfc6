// SPDX-License-Identifier: MIT
//
// Commands on their way: which are answered here, which a thread of the program must
// answer, one after the other, and what if none does.
//
// A thread is made to answer by a signal that the client never sees (WIRE_KICK). The
// main thread is asked first; every KICK_MS the next one too, since any of them may be
// stopped, or deep in the kernel.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/intake/run.h"

enum {
    KICK_MS = 100,      // for one thread to answer
    STOPPED_MS = 2000,  // for any of them to begin, while the program is stopped
    GIVE_UP_MS = 10000, // and while it only has to wait for a processor, on a machine that is busy
    STACKS_MS = 2000,   // for all of them to tell their stacks
    LOOK_MS = 2,        // between looks at the rings while an answer is due
    TIDS_MAX = 4096,
};

// A command that the program is to answer.
typedef struct Job {
    ControlCall *call; // NULL: nobody is interested any more
    char *line;
    bool for_all;
} Job;

// A call that waits for the end.
typedef struct Waiter {
    ControlCall *call; // NULL: free
    u64 until_ms;      // 0: for ever
} Waiter;

typedef struct Stack {
    u32 number;
    i32 tid;
    char *text;
} Stack;

typedef struct Commands {
    Control *control;
    Job jobs[CONTROL_CALLS_MAX];
    size_t job_count;    // the first is under way if sequence != 0
    u32 sequence;
    u64 begun_ms, kicked_ms;
    i32 tids[TIDS_MAX];  // threads to ask, in this order
    size_t tid_count, next_tid;
    Vec stacks;          // Stack, those that have come
    Waiter waiters[CONTROL_CALLS_MAX];
} Commands;

// ---------------------------------------------------------------------- kicks

static int kick(Run *run, i32 tid)
{
    siginfo_t info = {.si_signo = WIRE_KICK_SIGNAL, .si_code = SI_QUEUE};

    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)WIRE_KICK;
    if (!wire_kick_begin(run->shared))
        return EBUSY;
    long r = syscall(SYS_rt_tgsigqueueinfo, run->os_pid, tid, WIRE_KICK_SIGNAL, &info);
    int error = r < 0 ? errno : 0;
    wire_kick_end(run->shared);
    return error;
}

// The kernel lists the main thread first.
static size_t list_tids(const Run *run, i32 tids[TIDS_MAX])
{
    char path[32];
    size_t count = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", run->os_pid);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *entry; count < TIDS_MAX && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            tids[count++] = atoi(entry->d_name);
    }
    closedir(dir);
    return count;
}

static void list_threads(Run *run, Commands *c)
{
    c->tid_count = list_tids(run, c->tids);
    c->next_tid = 0;
}

// All of them: any may be stopped, or have ended while others go on. The first that comes says it.
void commands_kick_all(Run *run)
{
    i32 tids[TIDS_MAX];
    size_t count = list_tids(run, tids);

    for (size_t i = 0; i < count; i++)
        kick(run, tids[i]);
}

static void kick_next(Run *run, Commands *c)
{
    c->kicked_ms = now_ms();
    if (c->next_tid >= c->tid_count)
        list_threads(run, c);
    // One that has ended meanwhile costs no time.
    while (c->next_tid < c->tid_count && kick(run, c->tids[c->next_tid++]) == ESRCH)
        ;
}

// ----------------------------------------------------------------------- jobs

static void begin_job(Run *run, Commands *c)
{
    Job *job = &c->jobs[0];

    if (c->job_count == 0 || c->sequence != 0)
        return;
    c->sequence = wire_request(run->shared, job->line, job->for_all);
    c->begun_ms = now_ms();
    list_threads(run, c);
    if (!job->for_all) {
        kick_next(run, c);
        return;
    }
    c->kicked_ms = c->begun_ms;
    for (size_t i = 0; i < c->tid_count; i++)
        kick(run, c->tids[i]);
}

static void end_job(Run *run, Commands *c, int status)
{
    Job job = c->jobs[0];

    if (job.call)
        control_end(job.call, status);
    free(job.line);
    memmove(&c->jobs[0], &c->jobs[1], (c->job_count - 1) * sizeof(Job));
    c->job_count--;
    c->sequence = 0;
    for (size_t i = 0; i < c->stacks.count; i++)
        free(((Stack *)vec_at(&c->stacks, i))->text);
    vec_clear(&c->stacks);
    begin_job(run, c);
}

static void add_job(Run *run, ControlCall *call, const char *line, bool for_all)
{
    Commands *c = run->commands;
    char *copy = strdup(line);

    if (!copy || c->job_count == CONTROL_CALLS_MAX) {
        free(copy);
        control_printf(call, "too many commands at once\n");
        control_end(call, 1);
        return;
    }
    c->jobs[c->job_count++] = (Job){call, copy, for_all};
    begin_job(run, c);
}

static const char *why_silent(char state)
{
    switch (state) {
    case 'T': return "it is stopped by a signal";
    case 't': return "it is stopped by a debugger";
    case 'D': return "it waits in the kernel";
    default: return "it is ending, busy in the kernel, or has become another user";
    }
}

// True when the request is withdrawn: nobody has taken it, and nobody will.
static bool withdraw(Run *run, Commands *c)
{
    u32 *taken = &run->shared->header.request_taken;
    u32 seen = __atomic_load_n(taken, __ATOMIC_ACQUIRE);

    return seen != c->sequence &&
           __atomic_compare_exchange_n(taken, &seen, c->sequence, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static u64 patience_ms(char state)
{
    return state == 'T' || state == 't' ? STOPPED_MS : GIVE_UP_MS;
}

static void watch_job(Run *run, Commands *c)
{
    u64 now = now_ms(), waited = now - c->begun_ms;
    char state = waited < STOPPED_MS ? '?' : process_state(run->os_pid, run->os_pid);
    bool taken = __atomic_load_n(&run->shared->header.request_taken, __ATOMIC_ACQUIRE) ==
                 c->sequence;

    if (taken)
        return; // a command may take its time
    if (waited >= patience_ms(state) && withdraw(run, c)) {
        if (c->jobs[0].call)
            control_printf(c->jobs[0].call, "no thread of the program answers: %s\n",
                           why_silent(state));
        end_job(run, c, 1);
    } else if (now - c->kicked_ms >= KICK_MS) {
        kick_next(run, c);
    }
}

// --------------------------------------------------------------------- stacks

static int compare_stacks(const void *a, const void *b)
{
    const Stack *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static const Stack *stack_of(const Commands *c, i32 tid)
{
    for (size_t i = 0; i < c->stacks.count; i++) {
        const Stack *stack = vec_at(&c->stacks, i);
        if (stack->tid == tid)
            return stack;
    }
    return NULL;
}

static void say_stacks(Run *run, Commands *c)
{
    ControlCall *call = c->jobs[0].call;

    qsort(c->stacks.data, c->stacks.count, sizeof(Stack), compare_stacks);
    for (size_t i = 0; i < c->stacks.count; i++) {
        const Stack *stack = vec_at(&c->stacks, i);
        control_say(call, stack->text, strlen(stack->text));
    }
    for (size_t i = 0; i < c->tid_count; i++) {
        char state = process_state(run->os_pid, c->tids[i]);
        if (!stack_of(c, c->tids[i]) && state != '?')
            control_printf(call, "thread with tid %d: no answer, %s\n", c->tids[i],
                           why_silent(state));
    }
}

// Again: a signal may have been swallowed by one of its kind.
static void kick_silent(Run *run, Commands *c)
{
    c->kicked_ms = now_ms();
    for (size_t i = 0; i < c->tid_count; i++) {
        if (!stack_of(c, c->tids[i]))
            kick(run, c->tids[i]);
    }
}

static void watch_stacks(Run *run, Commands *c)
{
    bool all = true;

    for (size_t i = 0; i < c->tid_count && all; i++)
        all = stack_of(c, c->tids[i]) || process_state(run->os_pid, c->tids[i]) == '?';
    if (!all && now_ms() - c->begun_ms < STACKS_MS) {
        if (now_ms() - c->kicked_ms >= KICK_MS)
            kick_silent(run, c);
        return;
    }
    if (c->jobs[0].call)
        say_stacks(run, c);
    end_job(run, c, c->stacks.count > 0 ? 0 : 1);
}

void commands_stack(Run *run, const Wire_thread_stack *record)
{
    Commands *c = run->commands;

    if (!c || record->sequence != c->sequence || !c->jobs[0].call ||
        c->stacks.count >= TIDS_MAX || stack_of(c, (i32)record->tid))
        return;
    ReportStack frames = findings_stack(run, record->pcs);
    char *stack_text = report_stack_text(run->report, &frames);
    const char *name = findings_thread_name(run, record->number);
    bool sleeps = record->call.size > 0;
    Stack stack = {.number = (u32)record->number, .tid = (i32)record->tid};
    int size = asprintf(&stack.text, "Thread %llu%s%s (tid %d): %s%s\n%s",
                        (unsigned long long)record->number, name ? " " : "", name ? name : "",
                        stack.tid, sleeps ? "in " : "running", record->call.data,
                        stack_text ? stack_text : "");
    free(stack_text);
    if (size >= 0)
        vec_push(&c->stacks, &stack);
}

// -------------------------------------------------------------------- answers

void commands_text(Run *run, const Wire_command_text *text)
{
    Commands *c = run->commands;

    if (c && c->sequence != 0 && text->sequence == c->sequence && c->jobs[0].call)
        control_say(c->jobs[0].call, text->text.data, text->text.size);
}

void commands_hear(void *arg, const char *text, size_t size)
{
    Run *run = arg;
    Commands *c = run->commands;

    if (c && c->sequence != 0 && !c->jobs[0].for_all && c->jobs[0].call)
        control_say(c->jobs[0].call, text, size);
}

static void say_commands(const CommandAnswer *answer)
{
    for (int id = 0; id < CONTROL_COMMANDS; id++) {
        const ControlCommand *command = &control_commands[id];
        char usage[64];
        snprintf(usage, sizeof(usage), "%s%s%s", command->name, *command->arguments ? " " : "",
                 command->arguments);
        answer_say(answer, "  %-20s %s\n", usage, command->help);
    }
}

void commands_done(Run *run, const Wire_command_done *done)
{
    Commands *c = run->commands;

    if (!c || c->sequence == 0 || done->sequence != c->sequence || c->jobs[0].for_all)
        return;
    if (done->status == COMMAND_UNKNOWN && c->jobs[0].call) {
        CommandAnswer answer = {run, c->jobs[0].call};
        answer_say(&answer, "unknown command: %s\nCommands:\n", c->jobs[0].line);
        say_commands(&answer);
    }
    end_job(run, c, done->status == COMMAND_OK ? 0 : 1);
}

// ------------------------------------------------------------------- commands

static void add_waiter(Run *run, ControlCall *call, const char *arguments)
{
    Commands *c = run->commands;
    char *end;
    unsigned long ms = strtoul(arguments, &end, 10);

    for (size_t i = 0; i < CONTROL_CALLS_MAX && !*end; i++) {
        if (!c->waiters[i].call) {
            c->waiters[i] = (Waiter){call, *arguments ? now_ms() + ms : 0};
            return;
        }
    }
    control_printf(call, "wait: a number of milliseconds\n");
    control_end(call, 1);
}

static void run_line(void *arg, ControlCall *call, const char *line)
{
    Run *run = arg;
    CommandAnswer answer = {run, call};
    const char *arguments;
    ControlCommandId id = control_find(line, &arguments);

    if (id == CONTROL_HELP) {
        say_commands(&answer);
        add_job(run, call, "tool_help", false);
    } else if (id == CONTROL_WAIT) {
        add_waiter(run, call, arguments);
    } else if (id == CONTROL_COMMANDS || control_commands[id].where != CONTROL_IN_MONITOR) {
        bool for_all = id != CONTROL_COMMANDS && control_commands[id].where == CONTROL_IN_THREADS;
        add_job(run, call, line, for_all);
    } else {
        int status = core_command(&answer, id, arguments);
        if (status >= 0)
            control_end(call, status);
    }
}

// A job goes on without its caller: the program may have begun with it.
static void forget_call(void *arg, ControlCall *call)
{
    Run *run = arg;
    Commands *c = run->commands;

    if (run->heap)
        heap_forget(run->heap, call);
    for (size_t i = 0; i < c->job_count; i++) {
        if (c->jobs[i].call == call)
            c->jobs[i].call = NULL;
    }
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        if (c->waiters[i].call == call)
            c->waiters[i].call = NULL;
    }
}

WireCommandStatus commands_from_client(Run *run, const char *line)
{
    CommandAnswer answer = {run, NULL};
    const char *arguments;
    ControlCommandId id = control_find(line, &arguments);

    if (id == CONTROL_COMMANDS)
        return COMMAND_UNKNOWN;
    if (id == CONTROL_HELP) {
        say_commands(&answer);
        return COMMAND_OK;
    }
    if (control_commands[id].where != CONTROL_IN_MONITOR || id == CONTROL_WAIT) {
        answer_say(&answer, "%s: not for the program itself, only for muninn ctl\n",
                   control_commands[id].name);
        return COMMAND_FAILED;
    }
    return core_command(&answer, id, arguments) == 0 ? COMMAND_OK : COMMAND_FAILED;
}

// ------------------------------------------------------------------- the turns

void commands_open(Run *run)
{
    const char *error;
    if (run->options->vgdb == VGDB_NO)
        return;
    Commands *c = calloc(1, sizeof(*c));

    if (!c)
        return;
    vec_init(&c->stacks, sizeof(Stack));
    run->commands = c;
    c->control = control_open(run->os_pid, run_line, forget_call, run, &error);
    if (c->control)
        return;
    if (run->options->verbosity > 0)
        dprintf(INTAKE_LOG, "muninn: no `muninn ctl` for this run: %s\n", error);
    commands_forget(run);
}

void commands_forget(Run *run)
{
    Commands *c = run->commands;

    if (!c)
        return;
    control_forget(c->control);
    vec_free(&c->stacks);
    free(c);
    run->commands = NULL;
}

void commands_stop(Run *run)
{
    control_close(run->commands->control, "requests are not served any more\n");
    run->commands->control = NULL;
    commands_forget(run);
}

void commands_end(Run *run)
{
    Commands *c = run->commands;

    if (!c)
        return;
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        if (!c->waiters[i].call)
            continue;
        if (run->ended && !run->signal)
            control_printf(c->waiters[i].call, "the program has ended, status %d\n", run->status);
        else
            control_printf(c->waiters[i].call, "the program has ended\n");
        control_end(c->waiters[i].call, 0);
    }
    control_close(c->control, "the program has ended\n");
    c->control = NULL;
    commands_forget(run);
}

size_t commands_fds(const Run *run, struct pollfd *fds)
{
    return run->commands ? control_fds(run->commands->control, fds) : 0;
}

int commands_wait_ms(const Run *run, int wait_ms)
{
    return run->commands && run->commands->sequence && wait_ms > LOOK_MS ? LOOK_MS : wait_ms;
}

void commands_turn(Run *run, const struct pollfd *fds, size_t count)
{
    Commands *c = run->commands;

    if (!c)
        return;
    control_turn(c->control, fds, count);
    if (c->sequence && c->jobs[0].for_all)
        watch_stacks(run, c);
    else if (c->sequence)
        watch_job(run, c);
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        Waiter *waiter = &c->waiters[i];
        if (!waiter->call || !waiter->until_ms || now_ms() < waiter->until_ms)
            continue;
        ControlCall *call = waiter->call;
        waiter->call = NULL;
        control_printf(call, "the program still runs\n");
        control_end(call, 1);
    }
}
