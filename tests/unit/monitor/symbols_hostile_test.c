// SPDX-License-Identifier: MIT
//
// Hostile input: debug info, symbol tables, packages and perf maps with bytes changed at
// random, from fixed seeds. Whatever the reader does with them, the monitor's side goes on and
// gives at least one frame for each question. How often the reader's process died is printed:
// those are defects of elfutils or of ours, contained. Under sanitizers they fail the test, for
// there the code that is ours stops at the first wrong byte.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "monitor/symbols/perf_map.h"
#include "monitor/symbols/reader_process.h"
#include "monitor/symbols/symbols.h"

#define FUZZ_ROUNDS 120 // mutants of each form: a number, so that a run can be repeated

static char folder[] = "/tmp/muninn-hostile-XXXXXX";
static u32 warning_count;

static void count_warning(void *opaque, const char *line)
{
    (void)opaque, (void)line;
    warning_count++;
}

static const SymbolsConfig config = { .keep_debuginfo = true, .read_inline_info = true,
                                      .demangle = true, .warn = count_warning };

__attribute__((constructor)) static void make_folder(void)
{
    if (!mkdtemp(folder))
        abort();
}

__attribute__((destructor)) static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(command);
}

__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return system(command) == 0;
}

static u64 random_state;

static u64 next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static u8 *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        FAIL("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    u8 *bytes = malloc(size);
    CHECK(fread(bytes, 1, size, file) == size);
    fclose(file);
    *ret_size = size;
    return bytes;
}

static void write_file(const char *path, const u8 *bytes, size_t size)
{
    // A new file each time: the reader of the last round may still map the old one.
    unlink(path);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

// Where the interesting bytes of an ELF file are: everything that is not loaded, and the headers.
static bool pick_target(const u8 *bytes, size_t size, size_t *ret_at)
{
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof head);
    if (next_random() % 16 == 0) {
        *ret_at = next_random() % size;
        return true;
    }
    if (head.e_shnum == 0)
        return false;
    Elf64_Shdr section;
    u64 at = head.e_shoff + next_random() % head.e_shnum * sizeof section;
    if (at + sizeof section > size)
        return false;
    memcpy(&section, bytes + at, sizeof section);
    if (section.sh_flags & SHF_ALLOC || section.sh_size == 0 || section.sh_type == SHT_NOBITS ||
        section.sh_offset + section.sh_size > size)
        return false;
    // Headers of sections are where the counts and lengths are.
    u64 span = next_random() % 3 == 0 ? min_u64(64, section.sh_size) : section.sh_size;
    *ret_at = section.sh_offset + next_random() % span;
    return true;
}

static void mutate(u8 *bytes, size_t size)
{
    static const u8 nasty[] = { 0, 1, 0x7f, 0x80, 0xff, 0xfe };
    u32 changes = 1 + (u32)(next_random() % 24);

    for (u32 i = 0; i < changes; i++) {
        size_t at;
        if (!pick_target(bytes, size, &at))
            continue;
        switch (next_random() % 4) {
        case 0: bytes[at] = (u8)next_random(); break;
        case 1: bytes[at] = nasty[next_random() % sizeof nasty]; break;
        case 2: bytes[at] ^= (u8)(1 << next_random() % 8); break;
        case 3:
            for (size_t k = at; k < size && k < at + 4; k++)
                bytes[k] = 0xff;
            break;
        }
    }
}

static u64 now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

// Asks about addresses all over one file.
static void ask_around(const char *path, u64 text_size)
{
    Symbols *symbols = symbols_new(&config);
    Frame frames[64];
    DataName data;

    symbols_map(symbols, &(SymbolsMapping){ .start = 0x100000, .size = 0x100000, .path = path,
                                            .executable = true });
    for (u64 at = 0; at < text_size; at += 1 + text_size / 24) {
        CodePlace place = symbols_place(symbols, 0x100000 + at);
        size_t count = symbols_frames(symbols, place, 0x100000 + at, at & 1, frames, 64);
        CHECK(count >= 1 && count <= 64);
        for (size_t i = 0; i < count; i++)
            CHECK(!frames[i].function || strlen(frames[i].function) < READER_TEXT_MAX);
    }
    symbols_data(symbols, 0x100000 + text_size, &data);
    symbols_stack_data(symbols, symbols_place(symbols, 0x101100), false, -32, &data);
    symbols_free(symbols);
}

static void fuzz(const char *name, const char *build)
{
    char seed[256], victim[256];
    snprintf(seed, sizeof seed, "%s/%s", folder, name);
    snprintf(victim, sizeof victim, "%s/%s.mutated", folder, name);
    static const char source[] =
        "static inline __attribute__((always_inline)) int a(int x) { return x * rand(); }\\n"
        "static inline __attribute__((always_inline)) int b(int x) { return a(x) + a(2); }\\n"
        "struct s { struct s *next; int v[4]; } global;\\nint counted;\\n"
        "int outer(int x) { int l[8]; l[x] = b(x); puts((char *)l); return l[0] + counted; }\\n"
        "int main(int c, char **v) { (void)v; return outer(c); }\\n";
    if (!shell("cd %s && printf '#include <stdio.h>\\n#include <stdlib.h>\\n%s' > %s.c && "
               "%s %s.c -o %s",
               folder, source, name, build, name, name)) {
        printf("cannot build %s\n", name);
        return;
    }
    size_t size;
    u8 *original = read_file(seed, &size), *bytes = malloc(size);
    u32 before = warning_count;
    random_state = 0x9e3779b97f4a7c15ull;
    for (u32 round = 0; round < FUZZ_ROUNDS; round++) {
        memcpy(bytes, original, size);
        mutate(bytes, size);
        write_file(victim, bytes, size);
        ask_around(victim, 0x1400);
    }
    printf("%s: %u mutants, the reader gave up %u times\n", name, FUZZ_ROUNDS,
           warning_count - before);
    free(original);
    free(bytes);
    if (MUNINN_DEBUG)
        CHECK_EQ(warning_count, before);
}

TEST(mutated_debug_info_costs_names_never_the_monitor)
{
    static const struct {
        const char *name, *build;
    } forms[] = {
        { "dwarf5", "gcc -g -gdwarf-5 -O1" },
        { "dwarf4", "gcc -g -gdwarf-4 -O2" },
        { "dwarf2", "gcc -g -gdwarf-2 -gno-strict-dwarf -O1" },
        { "clang5", "clang -g -gdwarf-5 -O1" },
        { "zlib", "gcc -g -gz -O1" },
        { "split", "gcc -g -gsplit-dwarf -O1" },
        { "stripped", "gcc -s -rdynamic" },
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        fuzz(forms[i].name, forms[i].build);
}

TEST(mutated_packages_cost_names_never_the_monitor)
{
    char command[2048];
    if (!shell("cd %s && printf 'int f(int x) { return x; }\\nint main(void) { return f(1); }\\n' "
               "> p.c && gcc -gdwarf-4 -gsplit-dwarf -O1 p.c -o p && dwp -e p -o p.dwp", folder))
        return;
    char program[256], package[256];
    snprintf(program, sizeof program, "%s/p", folder);
    snprintf(package, sizeof package, "%s/p.dwp", folder);
    snprintf(command, sizeof command, "rm -f %s/*.dwo", folder);
    CHECK(system(command) == 0);
    size_t size;
    u8 *original = read_file(package, &size), *bytes = malloc(size);
    random_state = 42;
    for (u32 round = 0; round < FUZZ_ROUNDS; round++) {
        memcpy(bytes, original, size);
        mutate(bytes, size);
        write_file(package, bytes, size);
        ask_around(program, 0x1400);
    }
    free(original);
    free(bytes);
}

TEST(mutated_perf_maps_are_parsed)
{
    static const char line[] = "7f0012340000 1a0 LazyCompile:~f /x.js:1\n0xffffffffffffffff 2 x\n";
    char text[4096];
    random_state = 7;
    for (u32 round = 0; round < 20000; round++) {
        PerfMap map;
        u64 start;
        perf_map_init(&map, 0);
        size_t size = next_random() % sizeof text;
        for (size_t i = 0; i < size; i++)
            text[i] = next_random() % 20 == 0 ? (char)next_random() : line[i % (sizeof line - 1)];
        CHECK(perf_map_parse(&map, text, size) <= size);
        perf_map_find(&map, next_random(), &start);
        perf_map_free(&map);
    }
}

TEST(hostile_names_are_demangled_in_bounded_time)
{
    Symbols *symbols = symbols_new(&config);
    static char name[70000];
    static const char alphabet[] = "_ZNSIKERTFi123456789abclsXE0SaDpvJ";

    random_state = 99;
    u64 began = now_ms();
    for (u32 round = 0; round < 3000; round++) {
        size_t length = next_random() % (round % 100 == 0 ? sizeof name : 200);
        for (size_t i = 0; i < length; i++)
            name[i] = alphabet[next_random() % (sizeof alphabet - 1)];
        name[length] = '\0';
        static const char *const prefixes[] = { "_Z", "_ZN", "_R", "_D3", "_RNv" };
        const char *prefix = prefixes[next_random() % ARRAY_LEN(prefixes)];
        memcpy(name, prefix, length < strlen(prefix) ? length : strlen(prefix));
        CHECK(symbols_demangle(symbols, name) != NULL);
    }
    // Nested substitutions that double at every step.
    strcpy(name, "_Z1f");
    for (int i = 0; i < 64; i++)
        strcat(name, "St4pairI");
    CHECK(symbols_demangle(symbols, name) != NULL);
    CHECK(now_ms() - began < 300000);
    symbols_free(symbols);
}

// ---- the reader's process -------------------------------------------------------------------

// The pid of the reader: our only child.
static i32 reader_pid(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

TEST(a_reader_that_dies_is_started_again)
{
    Symbols *symbols = symbols_new(&config);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getpid());
    char own[512] = { 0 };
    CHECK(readlink(path, own, sizeof own - 1) > 0);
    symbols_map(symbols, &(SymbolsMapping){ .start = 0x1000000, .size = 0x1000000, .path = own,
                                            .executable = true });
    CHECK_STR(symbols_demangle(symbols, "_Z3foov"), "foo()");
    i32 pid = reader_pid();
    if (pid <= 0)
        return; // a kernel that does not list children
    kill(pid, SIGKILL);
    CHECK_STR(symbols_demangle(symbols, "_Z3barv"), "_Z3barv"); // this one question is lost
    CHECK_STR(symbols_demangle(symbols, "_Z3bazv"), "baz()");
    CHECK(reader_pid() != pid);
    symbols_free(symbols);
    CHECK_EQ(reader_pid(), 0);
}

// A checksum over a file of holes keeps the reader busy for longer than it is allowed.
TEST(a_question_that_takes_too_long_is_given_up)
{
    ReaderProcess process;
    char path[256];
    CHECK(shell("cd %s && printf 'int slow(void) { return 1; }\\n' > slow.c && "
                "gcc -shared -fPIC -g -Wl,--build-id=none slow.c -o slow.debug && "
                "truncate -s 320M slow.debug && strip -o slow slow.debug && "
                "objcopy --add-gnu-debuglink=slow.debug slow", folder));
    snprintf(path, sizeof path, "%s/slow", folder);
    reader_process_init(&process, &config);
    process.cpu_limit_ms = 100;
    CHECK(reader_process_ready(&process));
    u8 payload[sizeof(ModuleSpec) + 256] = { 0 };
    memcpy(payload + sizeof(ModuleSpec), path, strlen(path) + 1);
    // Written into after the checksum was made, so that the file does not match at the end.
    CHECK(shell("printf x | dd of=%s/slow.debug bs=1 seek=1M conv=notrunc 2> /dev/null", folder));
    ReaderRequest request = { .op = READER_DEFINE, .module = 1,
                              .payload_bytes = (u32)(sizeof(ModuleSpec) + strlen(path) + 1) };
    CHECK(reader_process_send(&process, &request, payload));
    request = (ReaderRequest){ .op = READER_FRAMES, .module = 1, .offset = 0x1100 };
    CHECK(reader_process_ask(&process, &request, NULL) == NULL);
    CHECK_EQ(process.pid, 0);
    shell("rm %s/slow.debug", folder);
    reader_process_free(&process);
}

TEST(a_reader_without_questions_ends_and_is_started_again)
{
    ReaderProcess process;
    ReaderRequest request = { .op = READER_DEMANGLE, .payload_bytes = 7 };
    reader_process_init(&process, &config);
    CHECK(reader_process_ready(&process));
    CHECK(reader_process_ask(&process, &request, "_Z3foov"));
    reader_process_rest(&process); // too soon
    CHECK(process.pid > 0);
    process.asked_ms = 0; // since the machine was started
    request.payload_bytes = 0;
    CHECK(reader_process_ask_ahead(&process, &request));
    reader_process_rest(&process); // an answer is to be taken
    CHECK(process.pid > 0);
    process.ahead_count = process.unsent = 0;
    reader_process_rest(&process);
    CHECK_EQ(process.pid, 0);
    u32 generation = process.generation;
    request.payload_bytes = 7;
    CHECK(reader_process_ready(&process) && process.generation == generation + 1);
    CHECK(reader_process_ask(&process, &request, "_Z3foov"));
    reader_process_free(&process);
}

TEST(a_reader_that_does_not_answer_is_replaced)
{
    ReaderProcess process;
    reader_process_init(&process, &config);
    CHECK(reader_process_ready(&process));
    // Stopped, it answers nothing and uses no processor time: only the wall clock helps, so the
    // test stands in for it.
    i32 pid = process.pid;
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    i32 killer = fork();
    if (killer == 0) {
        usleep(300000);
        kill(pid, SIGKILL);
        _exit(0);
    }
    ReaderRequest request = { .op = READER_DEMANGLE, .payload_bytes = 7 };
    CHECK(reader_process_ask(&process, &request, "_Z3foov") == NULL);
    CHECK_EQ(process.pid, 0);
    waitpid(killer, NULL, 0);
    CHECK(reader_process_ready(&process));
    const ReaderReply *reply = reader_process_ask(&process, &request, "_Z3foov");
    CHECK(reply && reply->item_count == 1);
    CHECK_STR(reader_reply_text(reply, reader_reply_items(reply)->name), "foo()");
    reader_process_free(&process);
}

// A library of two functions, mapped so that its file offsets are its addresses less the base.
static Symbols *map_library(const char *name, u64 *ret_first, u64 *ret_second)
{
    static char path[256];
    CHECK(shell("cd %s && printf 'int first(void)\\n{\\n    return 1;\\n}\\n' > %s1.c && "
                "printf 'int second(void)\\n{\\n    return 2;\\n}\\n' > %s2.c && "
                "gcc -shared -fPIC -g %s1.c %s2.c -o %s && "
                "nm %s | sed -n 's/ T / /p' | sort -k2 | cut -d' ' -f1 > %s.nm",
                folder, name, name, name, name, name, name, name));
    snprintf(path, sizeof path, "%s/%s.nm", folder, name);
    FILE *file = fopen(path, "r");
    CHECK(file && fscanf(file, "%lx %lx", ret_first, ret_second) == 2);
    fclose(file);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    Symbols *symbols = symbols_new(&config);
    symbols_map(symbols, &(SymbolsMapping){ .start = 0x100000, .size = 0x5000, .path = path,
                                            .executable = true });
    return symbols;
}

static Frame ask_one(Symbols *symbols, u64 offset)
{
    Frame frame;
    u64 pc = 0x100000 + offset;
    CHECK_EQ(symbols_frames(symbols, symbols_place(symbols, pc), pc, false, &frame, 1), 1);
    return frame;
}

TEST(a_file_that_kills_the_reader_is_read_for_its_symbol_table_only)
{
    u64 first, second;
    Symbols *symbols = map_library("deadly.so", &first, &second);
    CHECK_STR(symbols_demangle(symbols, "_Z3foov"), "foo()");
    i32 pid = reader_pid();
    if (pid <= 0)
        return;
    u32 before = warning_count;
    kill(pid, SIGKILL);
    Frame frame = ask_one(symbols, first);
    CHECK_STR(frame.function, "first");
    CHECK(frame.file == NULL);
    CHECK_EQ(warning_count, before + 1);
    kill(reader_pid(), SIGKILL);
    frame = ask_one(symbols, second);
    CHECK(frame.function == NULL && frame.object != NULL);
    CHECK_EQ(warning_count, before + 2);
    frame = ask_one(symbols, first); // what was found stays
    CHECK_STR(frame.function, "first");
    symbols_free(symbols);
}

TEST(a_file_truncated_while_it_is_read_costs_its_names)
{
    u64 first, second;
    Symbols *symbols = map_library("truncated.so", &first, &second);
    Frame frame = ask_one(symbols, first);
    CHECK_STR(frame.function, "first");
    CHECK_EQ(frame.line, 2);
    CHECK(shell("truncate -s 100 %s/truncated.so", folder));
    frame = ask_one(symbols, second + 1);
    CHECK(frame.object != NULL);
    CHECK_STR(symbols_demangle(symbols, "_Z3foov"), "foo()");
    symbols_free(symbols);
}

TEST(a_reader_holds_none_of_the_users_files)
{
    Symbols *symbols = symbols_new(&config);
    char path[64], target[256] = { 0 };
    symbols_demangle(symbols, "_Z3foov");
    i32 pid = reader_pid();
    for (int fd = 0; pid > 0 && fd < (MUNINN_DEBUG ? 2 : 3); fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        CHECK(readlink(path, target, sizeof target - 1) > 0);
        CHECK_STR(target, "/dev/null");
    }
    snprintf(path, sizeof path, "/proc/%d/fd/4", pid);
    CHECK(pid <= 0 || access(path, F_OK) != 0);
    symbols_free(symbols);
}

TEST(a_reader_ends_with_its_monitor)
{
    int pipe_ends[2];
    CHECK_EQ(pipe(pipe_ends), 0);
    i32 monitor = fork();
    if (monitor == 0) {
        Symbols *symbols = symbols_new(&config);
        symbols_demangle(symbols, "_Z3foov");
        i32 pid = reader_pid();
        if (write(pipe_ends[1], &pid, sizeof pid) < 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(monitor, NULL, 0);
    close(pipe_ends[1]);
    i32 pid = 0;
    CHECK(read(pipe_ends[0], &pid, sizeof pid) == sizeof pid);
    // The reader inherits no pipe: the end of ours is the end of all writers.
    CHECK(read(pipe_ends[0], &pid, 1) == 0);
    close(pipe_ends[0]);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    for (int i = 0; pid > 0 && i < 3000; i++) {
        char name[32] = { 0 };
        int fd = open(path, O_RDONLY);
        ssize_t got = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
        if (fd >= 0)
            close(fd);
        if (got <= 0 || strncmp(name, "muninn-symbols", 14) != 0)
            return;
        // A zombie that nobody reaps has ended too.
        snprintf(name, sizeof name, "/proc/%d/exe", pid);
        char target[8];
        if (readlink(name, target, sizeof target) < 0)
            return;
        usleep(20000);
    }
    CHECK(pid == 0);
}
