// SPDX-License-Identifier: MIT
//
// Findings: gives them names, asks the suppressions and the user's filters,
// keeps the limits, and sums up at the end.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/intake/run.h"

enum {
    FRAMES_MAX = 2048,         // of one stack, inlined ones included
    INLINE_MAX = 64,           // frames of one pc
    CONTEXTS_LIMIT = 1000,     // --error-limit
    TOTAL_LIMIT = 10000000,
    TEXT_MAX = 4096,
};

char *findings_keep_text(Run *run, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(&run->arena, size, 1);
    memcpy(copy, text, size);
    return copy;
}

// -------------------------------------------------------------------- stacks

typedef struct StackPlace {
    u64 pc; // 0: frames left out
    bool is_return;
    CodePlace place;
} StackPlace;

static StackPlace stack_place(Run *run, WireWords pcs, size_t index)
{
    u64 word = pcs.data[index];
    u32 unloading = (u32)(word >> WIRE_UNLOADING_SHIFT) & WIRE_UNLOADING_MASK;
    StackPlace at = {
        .pc = word & ~WIRE_EXACT_PC & ~((u64)WIRE_UNLOADING_MASK << WIRE_UNLOADING_SHIFT),
        .is_return = index > 0 && !(word & WIRE_EXACT_PC),
    };
    if (at.pc)
        at.place = symbols_place_before(run->symbols, at.is_return ? at.pc - 1 : at.pc, unloading);
    return at;
}

// The names of some frames are asked for together: alone, each would wake two processes.
static void ask_for_names(Run *run, WireWords pcs, size_t first)
{
    for (size_t i = first; i < pcs.count && i < first + SYMBOLS_AHEAD_MAX; i++) {
        StackPlace at = stack_place(run, pcs, i);
        if (at.pc && symbols_ask_ahead(run->symbols, at.place, at.is_return) == SYMBOLS_TOO_MANY)
            break;
    }
}

ReportStack findings_stack(Run *run, WireWords pcs)
{
    static Frame frames[FRAMES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < pcs.count && count < FRAMES_MAX; i++) {
        if (i % SYMBOLS_AHEAD_MAX == 0)
            ask_for_names(run, pcs, i);
        StackPlace at = stack_place(run, pcs, i);
        if (at.pc == 0 && i > 0) // else a jump led to 0
            continue;
        size_t room = FRAMES_MAX - count < INLINE_MAX ? FRAMES_MAX - count : INLINE_MAX;
        count += symbols_frames(run->symbols, at.place, at.pc, at.is_return, frames + count, room);
    }
    count = report_visible_frames(run->options, frames, count);
    Frame *copy = arena_alloc(&run->arena, (count + 1) * sizeof(Frame), _Alignof(Frame));
    memcpy(copy, frames, count * sizeof(Frame));
    return (ReportStack){copy, count};
}

// The file of the last thread stays open: one that has a thousand findings is asked as often.
static bool read_comm(Run *run, i32 tid, char *ret_name, size_t size)
{
    char path[64];
    for (bool is_new = run->comm_tid != tid;; is_new = true) {
        if (is_new) {
            if (run->comm_tid)
                close(run->comm);
            snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", run->os_pid, tid);
            run->comm = open(path, O_RDONLY | O_CLOEXEC);
            run->comm_tid = run->comm < 0 ? 0 : tid;
        }
        ssize_t length = run->comm_tid ? pread(run->comm, ret_name, size - 1, 0) : -1;
        if (length > 0)
            ret_name[length] = '\0';
        if (length > 0 || is_new)
            return length > 0;
    }
}

// The name that the thread has now; the client waits, so it is still there.
const char *findings_thread_name(Run *run, u64 number)
{
    char name[32];
    u64 tid;
    if (!map_get(&run->thread_tids, number, &tid) ||
        !read_comm(run, (i32)tid, name, sizeof(name)))
        return NULL;
    name[strcspn(name, "\n")] = '\0';
    // The first thread is called as its program unless somebody has named it.
    const char *slash = strrchr(run->options->execfn, '/');
    const char *program = slash ? slash + 1 : run->options->execfn;
    enum { COMM_MAX = 15 };
    if (number == 1 && strncmp(name, program, COMM_MAX) == 0)
        return NULL;
    return findings_keep_text(run, name);
}

// -------------------------------------------------------------- suppressions

// "Addr%n" with the size in place.
static const char *suppression_kind(Run *run, u32 kind, const u64 *values, size_t count)
{
    char text[64];
    const char *pattern = report_kind(kind)->suppression;
    const char *mark = strstr(pattern, "%n");
    if (!mark)
        return pattern;
    snprintf(text, sizeof(text), "%.*s%llu%s", (int)(mark - pattern), pattern,
             count ? (unsigned long long)values[0] : 0ull, mark + 2);
    return findings_keep_text(run, text);
}

static const char *leak_kind(u32 kind)
{
    switch (kind) {
    case KIND_LEAK_DEFINITE: return "definite";
    case KIND_LEAK_INDIRECT: return "indirect";
    case KIND_LEAK_POSSIBLE: return "possible";
    case KIND_LEAK_REACHABLE: return "reachable";
    default: return NULL;
    }
}

static SuppressQuery query_of(const RunFinding *f)
{
    return (SuppressQuery){
        .tool = report_kind(f->finding.kind)->tool,
        .kind = f->suppression_kind,
        .extra = f->suppression_extra,
        .leak_kind = leak_kind(f->finding.kind),
        .frames = f->finding.stack.frames,
        .count = f->finding.stack.count,
    };
}

static const char *generate(Run *run, const RunFinding *f)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    SuppressQuery query = query_of(f);
    suppress_generate(&query, out);
    fclose(out);
    const char *kept = text ? findings_keep_text(run, text) : NULL;
    free(text);
    return kept;
}

// --gen-suppressions=yes: the answer to "Print suppression ?". 'C' asks no more.
static bool user_wants_suppression(Run *run)
{
    char answer;
    report_prompt(run->report, "---- Print suppression ? --- [Return/N/n/Y/y/C/c] ---- ");
    for (;;) {
        if (read(INTAKE_INPUT, &answer, 1) != 1) {
            run->asks = false;
            return false;
        }
        switch (answer) {
        case '\n': return false;
        case 'n':
        case 'N':
        case 'y':
        case 'Y':
        case 'c':
        case 'C': {
            char rest;
            while (read(INTAKE_INPUT, &rest, 1) == 1 && rest != '\n')
                ;
            if (answer == 'c' || answer == 'C')
                run->asks = false;
            return answer == 'y' || answer == 'Y';
        }
        default: break;
        }
    }
}

// ------------------------------------------------------------------ judgement

static void stop_at_limit(Run *run)
{
    static const char *const lines[] = {
        "",
        "More than 1000 different errors detected.  I'm not reporting any more.",
        "Final error counts will be inaccurate.  Go fix your program!",
        "Rerun with --error-limit=no to disable this cutoff.  Note",
        "that errors may occur in your program without prior warning from",
        "Muninn, because errors are no longer being displayed.",
        "",
    };
    run->error_limit_hit = true;
    __atomic_store_n(&run->shared->header.stop_findings, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        report_note(run->report, lines[i]);
}

// What other threads find meanwhile, and the other leaks of a search, are no first errors.
static void end_at_first_error(Run *run)
{
    run->first_error_hit = true;
    report_line(run->report, "");
    report_line(run->report, "Exit program on first error (--exit-on-first-error=yes)");
    report_line(run->report, "");
    __atomic_store_n(&run->shared->header.exit_now, 1, __ATOMIC_RELEASE);
}

static WireVerdict show(Run *run, RunFinding *f)
{
    bool all = run->options->gen_suppressions == GEN_SUPPRESSIONS_ALL;
    if (all)
        f->finding.suppression = generate(run, f);
    if (report_finding(run->report, &f->finding) != REPORT_NEW)
        return VERDICT_IGNORED;
    if (run->asks && user_wants_suppression(run))
        report_suppression(run->report, generate(run, f));
    if (f->flags & FINDING_NOT_ERROR)
        return VERDICT_IGNORED;
    run->shown++;
    __atomic_store_n(&run->shared->header.shown_count, run->shown, __ATOMIC_RELAXED);
    // While the program runs, leaks that somebody asks for do not end it.
    if (run->options->exit_on_first_error &&
        (run->client_ended || !(f->flags & FINDING_ASKED_FOR)))
        end_at_first_error(run);
    return VERDICT_SHOWN;
}

static WireVerdict judge(Run *run, RunFinding *f)
{
    SuppressQuery query = query_of(f);
    f->suppression = suppress_match(run->suppressions, &query);
    if (f->suppression) {
        run->suppressed++;
        return VERDICT_SUPPRESSED;
    }
    if (f->flags & FINDING_HIDDEN)
        return f->flags & FINDING_NOT_ERROR ? VERDICT_IGNORED : VERDICT_SHOWN;
    if (run->first_error_hit)
        return VERDICT_IGNORED;
    if (f->flags & FINDING_ASKED_FOR)
        return show(run, f);
    if (run->error_limit_hit)
        return VERDICT_IGNORED;
    if (run->options->error_limit && run->shown >= CONTEXTS_LIMIT) {
        stop_at_limit(run);
        return VERDICT_IGNORED;
    }
    return show(run, f);
}

static void complete(Run *run, RunFinding *f)
{
    f->finding.parts = f->parts;
    holders_sort(f);
    f->verdict = judge(run, f);
    wire_finding_judge(run->shared, f->id, f->verdict);
}

// -------------------------------------------------------------------- arrival

static void set_leak(Finding *finding, const u64 *values, size_t count)
{
    if (!leak_kind(finding->kind) || count < 6)
        return;
    // Bytes, blocks, record, count of records, direct bytes, indirect bytes.
    finding->has_leak = true;
    finding->leaked_bytes = values[0];
    finding->leaked_blocks = values[1];
    finding->record = values[2];
    finding->record_count = values[3];
    finding->direct_bytes = values[4];
    finding->leak_check = count > 6 ? values[6] : 0;
}

// "Open file descriptor 3: /path": what is behind the colon.
static const char *path_in(Run *run, const char *sentence)
{
    static const char closed[] = " is already closed";
    const char *colon = strstr(sentence, ": /");
    if (!colon)
        return NULL;
    char *path = findings_keep_text(run, colon + 2);
    size_t length = strlen(path);
    if (length >= sizeof(closed) && strcmp(path + length + 1 - sizeof(closed), closed) == 0)
        path[length + 1 - sizeof(closed)] = '\0';
    return path;
}

static void set_words(Run *run, Finding *finding, const Wire_finding *record)
{
    char text[TEXT_MAX];
    report_headline(finding->kind, record->values.data, record->values.count, record->text.data,
                    text, sizeof(text));
    finding->what = findings_keep_text(run, text);
    finding->fd = -1;
    switch (finding->kind) {
    case KIND_SYSCALL_PARAM: finding->param = findings_keep_text(run, record->text.data); break;
    case KIND_FD_BAD_CLOSE:
    case KIND_FD_BAD_USE:
    case KIND_FD_NOT_CLOSED:
        finding->fd = record->values.count ? (i32)record->values.data[0] : -1;
        finding->path = path_in(run, record->text.data);
        break;
    default: break;
    }
    set_leak(finding, record->values.data, record->values.count);
}

// Of what is only judged nobody sees the names, if there is nothing to judge it by.
static ReportStack stack_of(Run *run, u32 flags, WireWords pcs)
{
    if (flags & FINDING_HIDDEN && suppress_count(run->suppressions) == 0)
        return (ReportStack){0};
    return findings_stack(run, pcs);
}

void findings_add(Run *run, const Wire_finding *record)
{
    u64 known;
    if (record->kind >= KIND_COUNT || record->id >= WIRE_FINDINGS || record->parts > 64 ||
        map_get(&run->finding_by_id, record->id, &known))
        return;
    RunFinding *f = arena_alloc(&run->arena, sizeof(*f), _Alignof(RunFinding));
    *f = (RunFinding){
        .id = (u32)record->id,
        .flags = (u32)record->flags,
        .parts_missing = (u32)record->parts,
    };
    f->finding = (Finding){
        .kind = (u32)record->kind,
        .unique = record->id,
        .tid = (u32)record->thread,
        .thread_name = findings_thread_name(run, record->thread),
        .stack = stack_of(run, (u32)record->flags, record->pcs),
        .count = 1,
    };
    set_words(run, &f->finding, record);
    f->suppression_kind = suppression_kind(run, f->finding.kind, record->values.data,
                                           record->values.count);
    if (f->finding.kind == KIND_SYSCALL_PARAM || f->finding.kind == KIND_FISHY_VALUE)
        f->suppression_extra = findings_keep_text(run, record->text.data);
    f->parts = arena_alloc(&run->arena, (2 * record->parts + 1) * sizeof(FindingPart),
                           _Alignof(FindingPart)); // a part may become two
    f->holdings = arena_alloc(&run->arena, (record->parts + 1) * sizeof(LeakHolding),
                              _Alignof(LeakHolding));
    vec_push(&run->findings, &f);
    map_put(&run->finding_by_id, record->id, (u64)f);
    if (f->parts_missing == 0)
        complete(run, f);
}

void findings_add_part(Run *run, const Wire_part *record)
{
    u64 value;
    char text[TEXT_MAX];
    if (!map_get(&run->finding_by_id, record->id, &value))
        return;
    RunFinding *f = (RunFinding *)value;
    if (f->parts_missing == 0)
        return;
    if (record->kind == PART_HELD_BY) {
        holders_add(run, f, record);
        if (--f->parts_missing == 0)
            complete(run, f);
        return;
    }
    report_part_text((u32)record->kind, record->values.data, record->values.count,
                     record->text.data, text, sizeof(text));
    size_t at = f->finding.part_count;
    f->parts[at] = (FindingPart){
        .kind = (u32)record->kind,
        .text = text[0] ? findings_keep_text(run, text) : NULL,
        .stack = stack_of(run, f->flags, record->pcs),
    };
    f->finding.part_count += parts_name(run, record, at ? &f->parts[at - 1] : NULL, &f->parts[at]);
    if (--f->parts_missing == 0)
        complete(run, f);
}

// -------------------------------------------------------------------- the end

static u64 count_of(const Run *run, const RunFinding *f)
{
    u64 count = __atomic_load_n(&run->shared->findings[f->id].count, __ATOMIC_RELAXED);
    return count ? count : 1;
}

static void sum_up(Run *run, RunSummary *summary, const Finding **shown)
{
    for (size_t i = 0; i < run->findings.count; i++) {
        RunFinding *f = *(RunFinding **)vec_at(&run->findings, i);
        f->finding.count = count_of(run, f);
        if (f->verdict == VERDICT_SHOWN) {
            shown[summary->finding_count++] = &f->finding;
            summary->error_count += f->finding.count;
            summary->context_count++;
        } else if (f->verdict == VERDICT_SUPPRESSED) {
            if (!(f->flags & FINDING_NOT_ERROR)) {
                summary->suppressed_count += f->finding.count;
                summary->suppressed_contexts++;
            }
            f->suppression->used += f->finding.count;
            f->suppression->leaked_bytes += f->finding.leaked_bytes;
            f->suppression->leaked_blocks += f->finding.leaked_blocks;
        }
    }
    summary->findings = shown;
}

static SuppressionUse *suppression_uses(const Run *run)
{
    size_t count = suppress_count(run->suppressions);
    SuppressionUse *uses = calloc(count + 1, sizeof(*uses));
    for (size_t i = 0; uses && i < count; i++) {
        const Suppression *s = suppress_at(run->suppressions, i);
        uses[i] = (SuppressionUse){s->name, s->file,        s->line,
                                   s->used, s->leaked_bytes, s->leaked_blocks};
    }
    return uses;
}

i32 findings_close(Run *run)
{
    const Finding **shown = calloc(run->findings.count + 1, sizeof(*shown));
    SuppressionUse *uses = suppression_uses(run);
    RunSummary summary = {
        .suppressions = uses,
        .suppression_count = uses ? suppress_count(run->suppressions) : 0,
        .killed = !run->ended,
        .replaced = run->replaced && !run->ended,
        .signal = run->signal,
        .exit_code = run->ended && !run->signal ? run->status : -1,
        .error_limit_hit = run->error_limit_hit,
        .has_errors = run->tool.gives & TOOL_GIVES_ERRORS ||
                      (run->tool.gives & TOOL_GIVES_DESCRIPTORS &&
                       run->options->track_fds != TRACK_FDS_NO),
    };
    sum_up(run, &summary, shown);
    free(uses);
    uses = suppression_uses(run); // with the counts that have just been made
    summary.suppressions = uses;
    report_close(run->report, &summary);
    run->report = NULL;
    free(shown);
    free(uses);
    bool is_lost = run->output_failed || report_failures() > 0;
    bool failed = (summary.error_count > 0 || is_lost) && run->options->error_exitcode != 0;
    return failed ? run->options->error_exitcode : -1;
}
