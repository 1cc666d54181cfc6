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

const char *findings_words(Run *run, const char *words, const FieldValues *values)
{
    char text[TEXT_MAX];
    report_words(words, values, text, sizeof(text));
    return text[0] ? findings_keep_text(run, text) : NULL;
}

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

static SuppressQuery query_of(const RunFinding *f)
{
    return (SuppressQuery){
        .tool = f->finding.kind->family,
        .kind = f->suppression_kind,
        .extra = f->suppression_extra,
        .leak_kind = f->finding.kind->leak_kind,
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

static void set_leak(Finding *finding, const FieldsLeak *leak)
{
    if (!finding->kind->leak_kind || !leak)
        return;
    finding->has_leak = true;
    finding->leaked_bytes = leak->bytes;
    finding->leaked_blocks = leak->blocks;
    finding->record = leak->record;
    finding->record_count = leak->records;
    finding->direct_bytes = leak->direct_bytes;
    finding->leak_check = leak->check;
}

// What outlives the record.
static const FieldValues *keep_values(Run *run, const FieldValues *values)
{
    FieldValues *copy = arena_alloc(&run->arena, sizeof(*copy), _Alignof(FieldValues));
    *copy = *values;
    for (u32 i = 0; i < copy->count; i++) {
        u64 *word = &copy->any.words[i];
        if (copy->shape->fields[i].type == FIELD_TEXT && *word)
            *word = (u64)findings_keep_text(run, (const char *)*word);
    }
    return copy;
}

// What the writers have a place of their own for.
static void set_details(Run *run, Finding *finding, const FieldValues *values)
{
    const FieldsDescriptor *descriptor = fields_descriptor(values);
    const FieldsSyscallParam *syscall = fields_syscall_param(values);
    finding->fd = descriptor ? (i32)descriptor->fd : -1;
    if (descriptor && descriptor->path)
        finding->path = findings_keep_text(run, descriptor->path);
    if (syscall)
        finding->param = findings_keep_text(run, syscall->param ? syscall->param : "");
    set_leak(finding, fields_leak(values));
    if (!kind_of_id(finding->kind->id))
        finding->values = keep_values(run, values);
}

static void set_words(Run *run, RunFinding *f, const FieldValues *values)
{
    const KindDescription *kind = f->finding.kind;
    const char *what = findings_words(run, kind->sentence, values);
    const char *suppression = findings_words(run, kind->suppression, values);
    f->finding.what = what ? what : kind->id;
    f->suppression_kind = suppression ? suppression : kind->id;
    f->suppression_extra = findings_words(run, kind->suppression_extra, values);
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
    FieldValues values;
    const KindDescription *kind = vocabulary_kind(run->vocabulary, record->kind);
    if (!kind || record->id >= WIRE_FINDINGS || record->parts > 64 ||
        map_get(&run->finding_by_id, record->id, &known))
        return;
    RunFinding *f = arena_alloc(&run->arena, sizeof(*f), _Alignof(RunFinding));
    *f = (RunFinding){
        .id = (u32)record->id,
        .flags = (u32)record->flags,
        .parts_missing = (u32)record->parts,
    };
    fields_decode(kind->shape, record->values.data, record->values.count, record->texts.data,
                  record->texts.size, &values);
    f->finding = (Finding){
        .kind = kind,
        .unique = record->id,
        .tid = (u32)record->thread,
        .thread_name = findings_thread_name(run, record->thread),
        .stack = stack_of(run, (u32)record->flags, record->pcs),
        .count = 1,
    };
    set_words(run, f, &values);
    set_details(run, &f->finding, &values);
    f->parts = arena_alloc(&run->arena, (2 * record->parts + 1) * sizeof(FindingPart),
                           _Alignof(FindingPart)); // a part may become two
    f->holdings = arena_alloc(&run->arena, (record->parts + 1) * sizeof(LeakHolding),
                              _Alignof(LeakHolding));
    vec_push(&run->findings, &f);
    map_put(&run->finding_by_id, record->id, (u64)f);
    if (f->parts_missing == 0)
        complete(run, f);
}

// The finding is not complete without its part, so that nobody may have described stands for it.
static const PartDescription *part_of(const Run *run, u64 number)
{
    const PartDescription *part = vocabulary_part(run->vocabulary, number);
    return part ? part : part_in_table(PART_NONE);
}

void findings_add_part(Run *run, const Wire_part *record)
{
    u64 value;
    FieldValues values;
    if (!map_get(&run->finding_by_id, record->id, &value))
        return;
    RunFinding *f = (RunFinding *)value;
    if (f->parts_missing == 0)
        return;
    const PartDescription *kind = part_of(run, record->kind);
    fields_decode(kind->shape, record->values.data, record->values.count, record->texts.data,
                  record->texts.size, &values);
    const FieldsHolder *holder = fields_holder(&values);
    if (holder) {
        holders_add(run, f, holder, record->pcs);
    } else {
        size_t at = f->finding.part_count;
        f->parts[at] = (FindingPart){
            .kind = kind,
            .text = findings_words(run, kind->sentence, &values),
            .place = findings_words(run, kind->place, &values),
            .stack = stack_of(run, f->flags, record->pcs),
        };
        f->finding.part_count += parts_name(run, &values, at ? &f->parts[at - 1] : NULL,
                                            &f->parts[at]);
    }
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
