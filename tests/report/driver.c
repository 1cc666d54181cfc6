// SPDX-License-Identifier: MIT
//
// Makes reports of findings that a script describes, so that the writers can be
// tested without a client. The command line is muninn's; the script comes on
// standard input, one command a line, words separated by tabs. "-" is NULL, \xNN a
// byte. Prints the verdict on each finding.
//
//   run PID PPID TOOL TITLE PROGRAM     arg WORD     opt WORD     exe PATH     fork
//   start                               opens the report
//   finding KIND UNIQUE TID NAME        kind by its id
//   values N...     text T     what T   the headline is made of values and pieces of text
//   leak BYTES BLOCKS RECORD RECORDS    fd N PATH    param T    suppression T
//   frame PC FUNCTION OBJECT DIRECTORY FILE LINE [inlined]
//   part ID TEXT N...                   frames that follow are the part's
//   declared DIRECTORY FILE LINE
//   emit [COUNT]
//   line T   note T   prompt T   entry T   client TID T   thread TID NAME   fatal SIGNAL CODE
//   ADDRESS STACK TID ended    extra NAME XML JSON   kill   sleep MS count UNIQUE N the final count
//   of a finding use COUNT NAME FILE LINE BYTES BLOCKS close ERRORS CONTEXTS SUPPRESSED CONTEXTS
//   EXIT SIGNAL [killed|replaced]
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor/report/report.h"

enum { WORDS_MAX = 64, FRAMES_MAX = 64, PARTS_MAX = 8, FINDINGS_MAX = 4096, HEADLINE_MAX = 65536 };

typedef struct Stack {
    Frame frames[FRAMES_MAX];
    size_t count;
} Stack;

typedef struct Made {
    Finding finding;
    Stack stack, part_stacks[PARTS_MAX];
    FindingPart parts[PARTS_MAX];
    size_t part_count;
    u64 values[WORDS_MAX];
    size_t value_count;
    const char *text;
} Made;

typedef struct Kept {
    struct Kept *next;
    char data[] __attribute__((aligned(16)));
} Kept;

static Kept *kept; // everything that must live to the end
static Options options;
static RunInfo run;
static const char *args[WORDS_MAX], *opts[WORDS_MAX];
static Report *report;
static Made *made;
static Stack *stack, loose; // where frames go
static const Finding *findings[FINDINGS_MAX];
static size_t finding_count;
static SuppressionUse uses[WORDS_MAX];
static size_t use_count;

static void *keep(size_t size)
{
    Kept *block = calloc(1, sizeof(*block) + size);

    if (!block)
        abort();
    block->next = kept;
    kept = block;
    return block->data;
}

// A copy of the word with its escapes undone.
static const char *unescape(const char *word)
{
    char *copy = keep(strlen(word) + 1), *to = copy;

    if (strcmp(word, "-") == 0)
        return NULL;
    while (*word) {
        if (word[0] == '\\' && word[1] == 'x' && isxdigit((u8)word[2]) && isxdigit((u8)word[3])) {
            *to++ = (char)strtoul((char[]){word[2], word[3], 0}, NULL, 16);
            word += 4;
        } else {
            *to++ = *word++;
        }
    }
    return copy;
}

static u64 number(const char *word)
{
    return strtoull(word, NULL, 0);
}

// What no table has.
static const FieldShape nothing = {.name = "nothing"};
static const KindDescription strange_kind = {
    .id = "unknown", .family = "unknown", .xml = "unknown", .level = "error", .title = "unknown",
    .sentence = "Finding of an unknown kind", .shape = &nothing, .number = UINT32_MAX,
};
static const PartDescription strange_part = {.id = "unknown", .sentence = "?", .shape = &nothing};

static const KindDescription *kind_by_id(const char *id)
{
    const KindDescription *kind = kind_of_id(id);
    return kind ? kind : &strange_kind;
}

static const PartDescription *part_by_id(const char *id)
{
    const PartDescription *part = part_of_id(id);
    return part ? part : &strange_part;
}

// Numbers go to the fields that are no texts, in their order, and pieces of the text, which a byte 1
// divides, to the others.
static FieldValues values_of(const FieldShape *shape, const u64 *numbers, size_t count,
                             const char *text)
{
    FieldValues values = {.shape = shape, .count = shape->count};
    size_t at = 0;

    for (u32 i = 0; i < shape->count; i++) {
        u64 *word = &values.any.words[i];
        if (shape->fields[i].type != FIELD_TEXT) {
            *word = at < count ? numbers[at++] : 0;
        } else if (text) {
            size_t size = strcspn(text, "\1");
            *word = (u64)memcpy(keep(size + 1), text, size);
            text = text[size] ? text + size + 1 : NULL;
        }
    }
    return values;
}

static void begin_finding(char **words)
{
    made = keep(sizeof(*made));
    made->finding = (Finding){.kind = kind_by_id(words[1]),
                              .unique = number(words[2]),
                              .tid = (u32)number(words[3]),
                              .thread_name = unescape(words[4]),
                              .fd = -1};
    stack = &made->stack;
}

static void add_frame(char **words, size_t count)
{
    if (!stack || stack->count == FRAMES_MAX)
        return;
    stack->frames[stack->count++] = (Frame){.pc = number(words[1]),
                                            .function = unescape(words[2]),
                                            .mangled = unescape(words[2]),
                                            .object = unescape(words[3]),
                                            .directory = unescape(words[4]),
                                            .file = unescape(words[5]),
                                            .line = (u32)number(words[6]),
                                            .inlined = count > 7};
}

static void add_part(char **words, size_t count)
{
    u64 numbers[WORDS_MAX] = {0};
    char *text = keep(HEADLINE_MAX), *place = keep(HEADLINE_MAX);

    if (!made || made->part_count == PARTS_MAX)
        return;
    for (size_t i = 3; i < count; i++)
        numbers[i - 3] = number(words[i]);
    FindingPart *part = &made->parts[made->part_count];
    part->kind = part_by_id(words[1]);
    FieldValues values = values_of(part->kind->shape, numbers, count - 3, unescape(words[2]));
    report_words(part->kind->sentence, &values, text, HEADLINE_MAX);
    report_words(part->kind->place, &values, place, HEADLINE_MAX);
    part->text = *text ? text : NULL;
    part->place = *place ? place : NULL;
    stack = &made->part_stacks[made->part_count++];
}

static ReportStack visible(const Stack *of)
{
    return (ReportStack){of->frames, report_visible_frames(&options, of->frames, of->count)};
}

static void emit(u64 count)
{
    static const char *const verdicts[] = {"new", "known", "filtered"};
    Finding *finding = &made->finding;

    if (!finding->what) {
        char *what = keep(HEADLINE_MAX);
        FieldValues values = values_of(finding->kind->shape, made->values, made->value_count,
                                       made->text);
        report_words(finding->kind->sentence, &values, what, HEADLINE_MAX);
        finding->what = what;
    }
    finding->stack = visible(&made->stack);
    for (size_t i = 0; i < made->part_count; i++)
        made->parts[i].stack = visible(&made->part_stacks[i]);
    finding->parts = made->parts;
    finding->part_count = made->part_count;
    finding->count = 1;
    ReportVerdict verdict = report_finding(report, finding);
    printf("%s\n", verdicts[verdict]);
    finding->count = count;
    if (verdict == REPORT_NEW && finding_count < FINDINGS_MAX)
        findings[finding_count++] = finding;
    stack = &loose;
    loose.count = 0;
}

static void close_report(char **words)
{
    RunSummary summary = {.error_count = number(words[1]),
                          .context_count = number(words[2]),
                          .suppressed_count = number(words[3]),
                          .suppressed_contexts = number(words[4]),
                          .exit_code = (i32)strtol(words[5], NULL, 0),
                          .signal = (i32)number(words[6]),
                          .findings = findings,
                          .finding_count = finding_count,
                          .suppressions = uses,
                          .suppression_count = use_count,
                          .killed = words[7][0] != '-',
                          .replaced = strcmp(words[7], "replaced") == 0,
                          .has_errors = true};
    report_close(report, &summary);
    report = NULL;
}

static void set_count(char **words)
{
    for (size_t i = 0; i < finding_count; i++)
        if (findings[i]->unique == number(words[1]))
            ((Finding *)findings[i])->count = number(words[2]);
}

static void describe_run(char **words)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    run.pid = (i32)number(words[1]);
    run.ppid = (i32)number(words[2]);
    run.tool = unescape(words[3]);
    run.tool_title = unescape(words[4]);
    run.program = unescape(words[5]);
    run.start_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void describe_finding(char **words, size_t count)
{
    const char *verb = words[0];
    Finding *finding = &made->finding;

    if (strcmp(verb, "values") == 0) {
        for (size_t i = 1; i < count; i++)
            made->values[made->value_count++ % WORDS_MAX] = number(words[i]);
    } else if (strcmp(verb, "text") == 0) {
        made->text = unescape(words[1]);
    } else if (strcmp(verb, "what") == 0) {
        finding->what = unescape(words[1]);
    } else if (strcmp(verb, "param") == 0) {
        finding->param = unescape(words[1]);
    } else if (strcmp(verb, "suppression") == 0) {
        finding->suppression = unescape(words[1]);
    } else if (strcmp(verb, "fd") == 0) {
        finding->fd = (i32)strtol(words[1], NULL, 0);
        finding->path = unescape(words[2]);
    } else if (strcmp(verb, "leak") == 0) {
        finding->has_leak = true;
        finding->leaked_bytes = number(words[1]);
        finding->leaked_blocks = number(words[2]);
        finding->record = number(words[3]);
        finding->record_count = number(words[4]);
    } else if (strcmp(verb, "declared") == 0 && made->part_count) {
        FindingPart *part = &made->parts[made->part_count - 1];
        part->directory = unescape(words[1]);
        part->file = unescape(words[2]);
        part->line = (u32)number(words[3]);
    } else {
        fprintf(stderr, "driver: %s means nothing\n", verb);
        exit(2);
    }
}

// What goes to the report as it is. False: the verb is another's.
static bool pass_on(char **words)
{
    const char *verb = words[0];
    ReportStack frames = visible(&loose);

    if (strcmp(verb, "line") == 0) {
        report_line(report, unescape(words[1]));
    } else if (strcmp(verb, "note") == 0) {
        report_note(report, unescape(words[1]));
    } else if (strcmp(verb, "prompt") == 0) {
        report_prompt(report, unescape(words[1]));
    } else if (strcmp(verb, "entry") == 0) {
        report_suppression(report, unescape(words[1]));
    } else if (strcmp(verb, "client") == 0) {
        report_client_text(report, (u32)number(words[1]), unescape(words[2]), &frames);
    } else if (strcmp(verb, "thread") == 0) {
        report_thread(report, (u32)number(words[1]), unescape(words[2]), &frames);
    } else if (strcmp(verb, "ended") == 0) {
        report_client_ended(report);
    } else if (strcmp(verb, "extra") == 0) {
        report_extra(report, unescape(words[1]), unescape(words[2]), unescape(words[3]));
    } else if (strcmp(verb, "fatal") == 0) {
        FatalSignal fatal = {.stack_limit_bytes = 8388608,
                             .signal = (i32)number(words[1]),
                             .code = (i32)strtol(words[2], NULL, 0),
                             .address = number(words[3]),
                             .full_stack_bytes = number(words[4]),
                             .tid = (u32)number(words[5]),
                             .stack = frames};
        report_fatal_signal(report, &fatal);
    } else {
        return false;
    }
    loose.count = 0;
    return true;
}

static void describe_other(char **words, size_t count)
{
    const char *verb = words[0];

    if (strcmp(verb, "run") == 0) {
        describe_run(words);
    } else if (strcmp(verb, "arg") == 0 && run.argc < WORDS_MAX) {
        args[run.argc++] = unescape(words[1]);
    } else if (strcmp(verb, "opt") == 0 && run.option_count < WORDS_MAX) {
        opts[run.option_count++] = unescape(words[1]);
    } else if (strcmp(verb, "exe") == 0) {
        run.muninn_exe = unescape(words[1]);
    } else if (strcmp(verb, "fork") == 0) {
        run.is_fork_child = true;
    } else if (strcmp(verb, "start") == 0) {
        run.argv = args;
        run.options = opts;
        report = report_open(&options, &run, options.log_fd);
        stack = &loose;
    } else if (strcmp(verb, "kill") == 0) {
        fflush(stdout);
        raise(SIGKILL);
    } else if (strcmp(verb, "sleep") == 0) {
        usleep((useconds_t)number(words[1]) * 1000);
    } else if (strcmp(verb, "count") == 0) {
        set_count(words);
    } else if (strcmp(verb, "use") == 0 && use_count < WORDS_MAX) {
        uses[use_count++] =
            (SuppressionUse){unescape(words[2]), unescape(words[3]), (u32)number(words[4]),
                             number(words[1]),   number(words[5]),   number(words[6])};
    } else if (strcmp(verb, "close") == 0) {
        close_report(words);
    } else if (made) {
        describe_finding(words, count);
    }
}

static void obey(char *line)
{
    static char none[] = "-";
    char *words[WORDS_MAX];
    size_t count = 0;

    for (char *word; count < WORDS_MAX - 8 && (word = strsep(&line, "\t"));)
        words[count++] = word;
    for (size_t i = count; i < WORDS_MAX; i++)
        words[i] = none;
    if (strcmp(words[0], "finding") == 0)
        begin_finding(words);
    else if (strcmp(words[0], "frame") == 0)
        add_frame(words, count);
    else if (strcmp(words[0], "part") == 0)
        add_part(words, count);
    else if (strcmp(words[0], "emit") == 0 && made && report)
        emit(count > 1 ? number(words[1]) : 1);
    else if (!report || !pass_on(words))
        describe_other(words, count);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options_init(&options);
    if (options_parse(argc, argv, &options) < 0) {
        fprintf(stderr, "driver: %s\n", options.error);
        return 2;
    }
    while ((length = getline(&line, &room, stdin)) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (*line)
            obey(line);
    }
    free(line);
    if (report)
        close_report((char *[]){"close", "0", "0", "0", "0", "-1", "0", "-"});
    for (Kept *block = kept, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    return 0;
}
