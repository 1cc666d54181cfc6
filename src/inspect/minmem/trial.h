// SPDX-License-Identifier: MIT
//
// What the parts of minmem share.
#ifndef MUNINN_INSPECT_MINMEM_TRIAL_H
#define MUNINN_INSPECT_MINMEM_TRIAL_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

#include "base/types.h"

// How the kernel, or we, hold a program to a limit; limit_kinds[] describes them.
typedef enum LimitKind {
    LIMIT_AUTO, // becomes one of the others
    LIMIT_CGROUP,
    LIMIT_AS,
    LIMIT_DATA,
    LIMIT_RSS,
    LIMIT_KINDS,
} LimitKind;

typedef struct LimitInfo {
    const char *name;
    const char *what;     // "cgroup memory.max, swap off"
    const char *children; // who is covered
    const char *json_children;
} LimitInfo;
extern const LimitInfo limit_kinds[LIMIT_KINDS];

// How a run ended, as far as the search is concerned.
typedef enum Verdict {
    VERDICT_SUCCESS,
    VERDICT_STATUS,  // it exited, or was killed, in another way than without a limit
    VERDICT_OOM,     // the kernel killed something in the cgroup
    VERDICT_OVER,    // it went over the limit that we watch
    VERDICT_TIMEOUT,
    VERDICT_OUTPUT,  // other output
    VERDICT_CHECK,   // the user's command said no
    VERDICT_STOPPED, // we were told to stop
    VERDICT_TROUBLE, // it could not be run: the session says why
    VERDICTS,
} Verdict;
extern const char *const verdict_names[VERDICTS];

typedef struct RunResult {
    Verdict verdict;
    int wait_status;     // as waitpid has it; valid unless stopped or in trouble
    u64 elapsed_ms;
    u64 rss_bytes;       // the most of one process: the kernel's own mark
    u64 tree_rss_bytes;  // of all processes together, as seen a few times a second; 0: unknown
    u64 as_bytes, data_bytes, stack_bytes; // the most seen
    u64 group_bytes;     // the cgroup's own mark, of all runs so far; 0: unknown
    u64 output_hash;
    u32 left_running;    // processes that it left behind
} RunResult;

typedef struct Options {
    LimitKind limit;
    u32 runs;            // at the border and without a limit
    u64 timeout_ms;      // 0: chosen after the first run
    u64 precision_bytes; // 0: chosen
    const char *check;   // a shell command, or NULL
    const char *cgroup;  // directory in which to make ours; NULL: looked for
    bool same_output;
    bool json;
    bool profile;        // one run under massif
    char **command;
    int command_count;
} Options;

typedef struct Session {
    const Options *options;
    LimitKind limit;     // not LIMIT_AUTO
    u64 timeout_ms;
    char group[PATH_MAX]; // our cgroup; "": none
    int input_fd;        // what every run reads
    int output_fd;       // what the last run wrote; -1: nobody looks at it
    sigset_t client_mask; // the signal mask that runs get
    bool has_baseline;   // what follows is known
    int wait_status;
    u64 output_hash;
    u32 run_count;
    void (*before_cleanup)(void *arg); // the program has ended; NULL: nothing is waited for
    void *cleanup_argument;
    char trouble[256];   // why it cannot go on; "": it can
} Session;

// ------------------------------------------------------------------------ runs

// limit_bytes UINT64_MAX: none. Waits until the program and all that it started are gone.
void run_once(Session *session, u64 limit_bytes, RunResult *ret_result);
// The number of a signal that told us to stop; 0: none.
extern volatile sig_atomic_t run_stopped_by;

// Ends and reaps all descendants but `spared` (0: none). Returns how many there were.
u32 leftover_end(pid_t spared);
// Resident bytes of the process and all below it.
u64 leftover_tree_rss(pid_t root);

// Makes a cgroup in which a limit can be set. False: `why` (of `size`) says what is missing.
bool group_make(Session *session, char *why, size_t size);
bool group_set_limit(const Session *session, u64 limit_bytes);
bool group_enter(const Session *session); // the calling process
u64 group_peak(const Session *session);
u64 group_oom_kills(const Session *session);
u32 group_kill(const Session *session); // returns how many processes there were
// Also called by the guard, with nothing but the name.
void group_remove(const char *group);

// ---------------------------------------------------------------------- search

typedef struct Baseline {
    u32 runs;
    RunResult lowest, highest; // of every number, over the runs
} Baseline;

bool measure_baseline(Session *session, Baseline *ret_baseline);

enum { ATTEMPTS_MAX = 256 };
typedef struct Attempt {
    u64 limit_bytes;
    u32 runs, successes;
    Verdict failure; // of its last run that failed
    int wait_status;
} Attempt;

typedef struct SearchResult {
    u64 needs_bytes; // every run succeeded
    u64 fails_bytes; // every run failed; 0: none was found that does
    bool is_uncertain_between; // at some limit in between some did, some did not
    Attempt attempts[ATTEMPTS_MAX];
    u32 attempt_count;
} SearchResult;

bool search_limit(Session *session, const Baseline *baseline, SearchResult *ret_result);

// --------------------------------------------------------------------- profile

enum { PROFILE_STACKS_MAX = 5, PROFILE_FRAMES_MAX = 4 };
typedef struct ProfileStack {
    u64 bytes;
    char frames[PROFILE_FRAMES_MAX][160];
    u32 frame_count;
} ProfileStack;

typedef struct ProfilePart {
    bool is_known;
    u64 peak_bytes;
    ProfileStack stacks[PROFILE_STACKS_MAX];
    u32 stack_count;
} ProfilePart;

typedef struct Profile {
    bool is_known;
    char why_not[160];
    ProfilePart heap, mapped, stack, resident;
} Profile;

void profile_run(Session *session, Profile *ret_profile);

// ---------------------------------------------------------------------- report

void report_progress(const Session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_clear_progress(void);
void report_print(const Session *session, const Baseline *baseline, const Profile *profile,
                  const SearchResult *result);
// "9.8 MiB"
enum { SIZE_TEXT = 24 };
char *report_size(char text[SIZE_TEXT], u64 bytes);

#endif
