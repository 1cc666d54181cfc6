// SPDX-License-Identifier: MIT
//
// Hostile records: the client can write into the wire, so the monitor gets records of every
// type with whatever in them, well formed and not, in any order. It must go on, and close its
// report. From fixed seeds; to be run under sanitizers.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "monitor/intake/run.h"

enum { ROUNDS = 24, RECORDS = 250, WORDS_MAX = WIRE_RECORD_BYTES_MAX / 8 - 2 };

static u64 random_state;
static u64 words[WORDS_MAX + 16];
static size_t word_count;
static Options options;

static u64 chance(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// ---------------------------------------------------- well formed, full of nonsense

static u64 odd_number(void)
{
    static const u64 odd[] = {0, 1, 2, 3, 7, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull,
                              1ull << 63, WIRE_FINDINGS - 1, WIRE_FINDINGS, WIRE_RINGS};
    u64 kind = chance() % 4;
    return kind == 0 ? chance() : kind == 1 ? chance() % KIND_COUNT : odd[chance() % ARRAY_LEN(odd)];
}

static void put(u64 word)
{
    if (word_count < WORDS_MAX)
        words[word_count++] = word;
}

// Mostly short; sometimes as long as can be; with format letters, markup, control characters and
// pieces of UTF-8.
static void put_text(void)
{
    static const char *const pieces[] = {"%s%n%x", "<&>\"'", "\x1b[31m", "\xc3", "\xff\xfe", "\n\r\t",
                                         "write(buf)", ": /", "/bin/sh", "/dev/null", "errors",
                                         "status", "help", "a b", "{", "}", "...",
                                         "{size}", "{a?b|c}", "|"};
    char text[32 * 1024];
    size_t size = 0, wanted = chance() % 8 == 0 ? chance() % sizeof(text) : chance() % 60;
    while (size < wanted) {
        const char *piece = pieces[chance() % ARRAY_LEN(pieces)];
        size_t length = strlen(piece);
        if (size + length > wanted)
            break;
        memcpy(text + size, piece, length);
        size += length;
    }
    if (word_count + size / 8 + 2 > WORDS_MAX)
        size = 0;
    put(size);
    size_t at = word_count;
    for (size_t i = 0; i < size / 8 + 1; i++)
        put(0);
    memcpy(words + at, text, size);
}

static void put_words(void)
{
    u64 count = chance() % 16 == 0 ? chance() % 3000 : chance() % 9;
    if (word_count + count + 1 > WORDS_MAX)
        count = 0;
    put(count);
    for (u64 i = 0; i < count; i++)
        put(odd_number());
}

#define U64(field) put(odd_number());
#define TEXT(field) put_text();
#define WORDS(field) put_words();
#define RECORD(NAME, Name, ...)        \
    static void fill_##Name(void)      \
    {                                  \
        __VA_ARGS__                    \
    }
#include "wire/records.def"
#undef U64
#undef TEXT
#undef WORDS

static void (*const fillers[RECORD_TYPES])(void) = {
#define RECORD(NAME, Name, ...) [RECORD_##NAME] = fill_##Name,
#include "wire/records.def"
};

// --------------------------------------------------------------- what findings can be

static WireText text_of(const char *text)
{
    return (WireText){text ? text : "", text ? strlen(text) : 0};
}

// The types of the fields in `types`, their names in `names`.
static WireText list_fields(const FieldShape *shape, u64 types[FIELDS_MAX], char names[2048])
{
    size_t size = 0;
    for (u32 i = 0; i < shape->count; i++) {
        const char *choice = shape->fields[i].words;
        types[i] = shape->fields[i].type;
        size += (size_t)sprintf(names + size, "%s", shape->fields[i].name) + 1;
        size += (size_t)sprintf(names + size, "%s", choice ? choice : "") + 1;
    }
    names[size] = 0;
    return (WireText){names, size};
}

// As an engine does it.
static void describe_table(Vocabulary *vocabulary)
{
    u64 types[FIELDS_MAX];
    char names[2048];
    for (u32 i = 0; i < KIND_COUNT; i++) {
        const KindDescription *kind = kind_in_table(i);
        WireText fields = list_fields(kind->shape, types, names);
        CHECK(vocabulary_add_kind(vocabulary, &(Wire_describe_kind){
            .number = i, .id = text_of(kind->id), .family = text_of(kind->family),
            .xml = text_of(kind->xml), .xml_4 = text_of(kind->xml_4),
            .suppression = text_of(kind->suppression),
            .suppression_extra = text_of(kind->suppression_extra),
            .leak_kind = text_of(kind->leak_kind), .level = text_of(kind->level),
            .title = text_of(kind->title), .sentence = text_of(kind->sentence),
            .help = text_of(NULL), .shape = text_of(kind->shape->name),
            .field_types = {types, kind->shape->count}, .field_names = fields,
        }));
        CHECK(vocabulary_kind(vocabulary, i)->shape == kind->shape);
    }
    for (u32 i = 0; i < PART_COUNT; i++) {
        const PartDescription *part = part_in_table(i);
        WireText fields = list_fields(part->shape, types, names);
        CHECK(vocabulary_add_part(vocabulary, &(Wire_describe_part){
            .number = i, .id = text_of(part->id), .sentence = text_of(part->sentence),
            .place = text_of(part->place), .shape = text_of(part->shape->name),
            .field_types = {types, part->shape->count}, .field_names = fields,
        }));
    }
}

// ----------------------------------------------------------------------- the run

static pid_t victim; // whoever the records make us signal, it is this one

static void open_run(Run *run)
{
    static const char *const argv[] = {"prog", NULL};
    static IntakeCommand command = {.options = &options, .argc = 1, .argv = argv};
    int fd = wire_create();
    *run = (Run){.command = &command, .options = &options, .life = -1, .attach = -1, .pidfd = -1};
    run->shared = wire_map(fd);
    close(fd);
    CHECK(run->shared != NULL);
    run->shared->header.pid = victim;
    run->consumer = wire_consumer_new(run->shared);
    run->info = (RunInfo){.pid = victim, .tool = "memcheck", .tool_title = "Memcheck",
                          .program = "/bin/prog", .argc = 1, .argv = argv, .muninn_exe = "muninn"};
    run->symbols = symbols_new(&(SymbolsConfig){.pid = victim, .demangle = true});
    run->vocabulary = vocabulary_new();
    run->info.vocabulary = run->vocabulary;
    run->suppressions = suppress_new();
    vec_init(&run->findings, sizeof(RunFinding *));
}

static void close_run(Run *run)
{
    if (run->report)
        findings_close(run);
    vocabulary_free(run->vocabulary);
    symbols_free(run->symbols);
    suppress_free(run->suppressions);
    wire_consumer_free(run->consumer);
    wire_unmap(run->shared);
}

static void give(Run *run, u32 type, size_t count)
{
    run_take(run, &(WireRecord){
        .type = type,
        .ring = (u32)(chance() % WIRE_RINGS),
        .stamp = chance(),
        .words = words,
        .count = count,
    });
}

static void give_start(Run *run)
{
    word_count = 0;
    fill_start();
    give(run, RECORD_START, word_count);
}

static u64 count_kinds(const Run *run)
{
    u64 count = 0;
    while (vocabulary_kind(run->vocabulary, count))
        count++;
    return count;
}

// The next kind, or the next part. A finding with a number of its own and a kind that exists; a part of one of the last.
static void make_likely(const Run *run, u32 type)
{
    static u64 id;
    if (type == RECORD_DESCRIBE_KIND)
        words[0] = count_kinds(run);
    if (type == RECORD_FINDING) {
        words[0] = id++ % WIRE_FINDINGS;
        words[1] = chance() % (count_kinds(run) + 1);
        words[3] = chance() % 3;
    } else if (type == RECORD_PART) {
        words[0] = id - chance() % 4;
        words[1] = chance() % (PART_COUNT + 1);
    }
}

static void give_any(Run *run)
{
    u32 type = (u32)(chance() % (RECORD_TYPES + 2));
    // Findings are what most code is for.
    if (chance() % 3 == 0)
        type = chance() % 2 ? RECORD_FINDING : RECORD_PART;
    word_count = 0;
    if (type < RECORD_TYPES && fillers[type])
        fillers[type]();
    if (chance() % 4)
        make_likely(run, type);
    size_t count = word_count;
    if (chance() % 8 == 0) { // no longer well formed
        for (u64 i = chance() % 4; word_count && i < 4; i++)
            words[chance() % word_count] = odd_number();
        count = chance() % (word_count + 2);
    }
    give(run, type, count);
}

static void set_up(const char *folder)
{
    static char log[128], json[128], sarif[128], leaks[128], memory[128];
    options_init(&options);
    options.exe = options.execfn = "/bin/prog";
    options.tool = "memcheck";
    snprintf(log, sizeof(log), "%s/log", folder);
    snprintf(json, sizeof(json), "%s/json", folder);
    snprintf(sarif, sizeof(sarif), "%s/sarif", folder);
    snprintf(leaks, sizeof(leaks), "%s/leaks", folder);
    snprintf(memory, sizeof(memory), "%s/memory", folder);
    options.xtree_leak_file = leaks;
    options.xtree_memory_file = memory;
    options.xtree_memory = XTREE_MEMORY_FULL;
    options.log_file = log;
    options.json_file = json;
    options.sarif_file = sarif;
    options.gen_suppressions = GEN_SUPPRESSIONS_ALL;
    options.show_error_list = true;
}

static void clean_up(const char *folder)
{
    char path[512];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(listing);
    CHECK(rmdir(folder) == 0); // there was nothing but files of the names that the options have
}

TEST(records_full_of_nonsense_do_no_harm)
{
    char folder[] = "/tmp/muninn-intake-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    set_up(folder);
    victim = fork();
    if (victim == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    u64 findings = 0, judged = 0;
    for (u64 seed = 1; seed <= ROUNDS; seed++) {
        Run run;
        random_state = seed * 0x9e3779b97f4a7c15ull;
        open_run(&run);
        // In some runs the kinds are what random records describe, nearly nothing.
        if (seed % 8)
            describe_table(run.vocabulary);
        if (seed % 4)
            give_start(&run);
        for (int i = 0; i < RECORDS; i++)
            give_any(&run);
        CHECK(run.info.pid == victim); // not whom a record names
        findings += run.findings.count;
        judged += run.shown + run.suppressed;
        close_run(&run);
    }
    // Enough of them were taken for what they might have been.
    printf("# %llu findings, %llu shown\n", (unsigned long long)findings, (unsigned long long)judged);
    CHECK(findings > ROUNDS * 10 && judged > ROUNDS);
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    clean_up(folder);
}
