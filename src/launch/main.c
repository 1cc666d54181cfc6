// SPDX-License-Identifier: MIT
//
// The muninn command. It works out what to run and how, says clearly what is
// wrong if that cannot be run, and becomes the engine by execve: the pid stays,
// and so does everything a process inherits. For that reason nothing here may
// touch signals, limits, the working directory, the umask or descriptors that
// were open.
//
// The command is linked statically, so that LD_* variables meant for the client
// have no ld.so to act on.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "launch/help.h"
#include "launch/launch.h"
#include "launch/option_files.h"
#include "launch/option_sources.h"
#include "launch/options.h"
#include "launch/script.h"

enum {
    EXIT_USAGE = 1,
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

// glibc's execvp searches these when PATH is not set.
#define DEFAULT_PATH "/bin:/usr/bin"

static Options options;
static Program program;
static bool is_compat; // called as valgrind

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[2 * PATH_MAX + 512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    // One write, so that the line stays whole among other processes' output.
    dprintf(STDERR_FILENO, "%s: %s\n", is_compat ? "valgrind" : "muninn", line);
}

static _Noreturn void die_out_of_memory(void)
{
    say("out of memory");
    exit(EXIT_USAGE);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL)
        die_out_of_memory();
    return memory;
}

// ---------------------------------------------------------------- options

// The last part of argv[0]: a symbolic link called valgrind makes us behave so.
static void find_called_name(int argc, char **argv)
{
    const char *name = argc > 0 && argv[0] != NULL ? strrchr(argv[0], '/') : NULL;

    name = name != NULL ? name + 1 : (argc > 0 && argv[0] != NULL ? argv[0] : "");
    is_compat = strncmp(name, "valgrind", strlen("valgrind")) == 0;
}

// Returns the index of the program in argv.
static int parse_options(int argc, char **argv)
{
    static OptionSources sources;
    char place[PATH_MAX + 128];

    if (!option_sources_read(&sources, argc, argv, is_compat, say)) {
        say("%s", sources.problem);
        exit(EXIT_USAGE);
    }
    options_init(&options);
    int index = options_parse(sources.argc, sources.argv, &options);
    if (index >= 0 && options.muninn_exe != NULL) {
        say("unknown option --muninn-exe; muninn --help lists them");
        exit(EXIT_USAGE);
    }
    if (index < 0) {
        option_sources_locate(&sources, options.error_index, place, sizeof(place));
        say("%s%s", place, options.error);
        exit(EXIT_USAGE);
    }
    return index - sources.added;
}

static void answer_version(void)
{
    if (!is_compat)
        puts("muninn " MUNINN_VERSION);
    else if (options.verbosity > 0)
        puts("valgrind-" COMPAT_VERSION " (muninn " MUNINN_VERSION ")");
    else
        puts("valgrind-" COMPAT_VERSION);
    exit(EXIT_SUCCESS);
}

static void answer_help_and_version(void)
{
    if (options.version)
        answer_version();
    if (options.help == NULL)
        return;
    if (!help_print(options.help, options.tool)) {
        say("--help=%s: no such topic; name a tool that is here, or nothing", options.help);
        exit(EXIT_USAGE);
    }
    exit(EXIT_SUCCESS);
}

static void settle_options(void)
{
    if (options_settle(&options) < 0 || !option_files_settle(&options)) {
        say("%s", options.error);
        exit(options.cannot_write ? EXIT_CANNOT_RUN : EXIT_USAGE);
    }
}

// ---------------------------------------------------------------- the program

// True if execvp would go on with the next directory of PATH.
static bool search_goes_on(int error)
{
    switch (-error) {
    case EACCES:
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
    case ENODEV:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

// Searches PATH as execvp does: a file that exists but cannot be run is
// remembered and reported only if no other is found. Returns the path, to be
// probed again by the caller, or NULL if nothing has that name.
static const char *search_path(const char *name)
{
    const char *path = getenv("PATH");
    char *refused = NULL;

    if (path == NULL)
        path = DEFAULT_PATH;
    for (;;) {
        size_t len = strcspn(path, ":");
        char *candidate = allocate(len + strlen(name) + 2);

        // An empty element is the working directory.
        sprintf(candidate, "%.*s%s%s", (int)len, path, len ? "/" : "", name);
        int error = program_probe(candidate, &program);
        if (error == 0 || !search_goes_on(error))
            return candidate;
        if (program.found && refused == NULL)
            refused = candidate;
        else
            free(candidate);
        if (path[len] == '\0')
            return refused;
        path += len + 1;
    }
}

static _Noreturn void die_not_found(const char *name)
{
    if (strchr(name, '/') != NULL)
        say("%s", program.problem);
    else
        say("%s: not found in PATH", name);
    exit(EXIT_NOT_FOUND);
}

// Sets options.exe, .execfn and .script, and returns the words that replace
// argv[0]; their number in ret_count.
static const char **resolve_program(const char *name, u32 *ret_count)
{
    static const char *words[ARRAY_LEN(program.words) + 1];
    const char *path = strchr(name, '/') != NULL ? name : search_path(name);

    if (name[0] == '\0' || path == NULL)
        die_not_found(name);
    int error = program_probe(path, &program);
    options.execfn = path;
    if (error == -ENOEXEC && program.is_text && program.word_count == 0) {
        error = program_probe("/bin/sh", &program);
        options.execfn = "/bin/sh";
        words[0] = "/bin/sh";
        words[1] = path;
        *ret_count = 2;
    } else if (program.word_count != 0) {
        memcpy(words, program.words, program.word_count * sizeof(words[0]));
        words[program.word_count] = path;
        *ret_count = program.word_count + 1;
        options.script = path;
    } else {
        words[0] = name;
        *ret_count = 1;
    }
    if (error != 0 && !program.found)
        die_not_found(name);
    if (error != 0) {
        say("%s", program.problem);
        exit(EXIT_CANNOT_RUN);
    }
    options.exe = program.exe;
    return words;
}

static void warn_of_lost_privileges(void)
{
    if (program.lost & PRIVILEGE_SETUID)
        say("warning: %s is set-user-ID; under muninn it runs without the privileges of user %u",
            program.exe, program.lost_uid);
    if (program.lost & PRIVILEGE_SETGID)
        say("warning: %s is set-group-ID; under muninn it runs without the privileges of group %u",
            program.exe, program.lost_gid);
    if (program.lost & PRIVILEGE_CAPABILITIES)
        say("warning: %s has file capabilities; under muninn it runs without these privileges",
            program.exe);
}

// ---------------------------------------------------------------- the engine

static const char *own_path(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len > 0) {
        path[len] = '\0';
        return path;
    }
    // Without /proc, what execve was given is the next best.
    const char *execfn = (const char *)getauxval(AT_EXECFN);
    if (execfn == NULL || realpath(execfn, path) == NULL) {
        say("cannot find out where muninn is installed: /proc is not mounted");
        exit(EXIT_USAGE);
    }
    return path;
}

static bool is_beside(const char *launcher, const char *place, const char *name, char *path,
                      size_t size)
{
    int directory_len = (int)(strrchr(launcher, '/') - launcher);

    snprintf(path, size, "%.*s/%s%s", directory_len, launcher, place, name);
    return access(path, F_OK) == 0;
}

// In a build tree our other programs are beside the launcher; installed, in libexec.
static const char *find_beside(const char *launcher, const char *name)
{
    static char path[PATH_MAX + 64];

    if (is_beside(launcher, "", name, path, sizeof(path)) ||
        is_beside(launcher, "../libexec/muninn/", name, path, sizeof(path)))
        return path;
    say("incomplete installation: there is no %s in %.*s or its ../libexec/muninn", name,
        (int)(strrchr(launcher, '/') - launcher), launcher);
    exit(EXIT_USAGE);
}

// The plugin that runs scripts in Lua is made where Lua is installed.
static const char *find_script_tool(const char *launcher)
{
    static char path[PATH_MAX + 64];

    if (is_beside(launcher, "", "muninn-lua.so", path, sizeof(path)) ||
        is_beside(launcher, "../lib/muninn/", "muninn-lua.so", path, sizeof(path)))
        return path;
    bool is_file = strcmp(options.tool, OPTIONS_NO_FILE) != 0;
    say("%s%s needs muninn-lua.so, and there is none in %.*s or its ../lib/muninn: muninn was "
        "built without Lua 5.4 (liblua5.4-dev)", is_file ? "--tool=" : "-e",
        is_file ? options.tool : "", (int)(strrchr(launcher, '/') - launcher), launcher);
    exit(EXIT_USAGE);
}

// A tool that is installed goes by its name.
static const char *find_tool(const char *name)
{
    static const char *const places[] = {"tools", "../lib/muninn/tools"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    char path[PATH_MAX + 64];
    const char *launcher = own_path();
    int directory_len = (int)(strrchr(launcher, '/') - launcher);

    if (name[0] == '\0' || name[strspn(name, letters)] != '\0')
        return NULL;
    for (u32 i = 0; i < ARRAY_LEN(places); i++) {
        int n = snprintf(path, sizeof(path), "%.*s/%s/%s.so", directory_len, launcher, places[i],
                         name);
        if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0)
            return realpath(path, NULL);
    }
    return NULL;
}

// muninn-engine OPTIONS -- WORDS ARGUMENTS
static char **engine_argv(const char **words, u32 word_count, char **arguments, int argument_count)
{
    size_t max = OPTIONS_ARGV_MAX + word_count + (size_t)argument_count + 3;
    char **argv = allocate(max * sizeof(*argv));
    size_t text_size = options_text_size(&options);

    argv[0] = (char *)"muninn-engine";
    int count = options_to_argv(&options, allocate(text_size), text_size, argv + 1,
                                OPTIONS_ARGV_MAX);
    if (count < 0) {
        say("cannot hand the options to the engine: %s", strerror(-count));
        exit(EXIT_USAGE);
    }
    char **at = argv + 1 + count;
    *at++ = (char *)"--";
    for (u32 i = 0; i < word_count; i++)
        *at++ = (char *)words[i];
    memcpy(at, arguments, (size_t)argument_count * sizeof(*at));
    return argv;
}

// ---------------------------------------------------------------- subcommands

// Becomes muninn-inspect if the first word is a subcommand: `muninn ps`. Any other
// way to say it (a path, an option or -- before it) means a program, and under
// the name of valgrind there are only programs.
static void become_subcommand(int argc, char **argv)
{
    const Subcommand *command = option_subcommands;
    char first[64];

    if (argc < 2 || is_compat)
        return;
    while (command->name != NULL && strcmp(command->name, argv[1]) != 0)
        command++;
    if (command->name == NULL)
        return;
    const char *inspect = find_beside(own_path(), "muninn-inspect");
    snprintf(first, sizeof(first), "--subcommand=%s", command->name);
    argv[0] = (char *)"muninn-inspect";
    argv[1] = first;
    execv(inspect, argv);
    say("cannot start %s: %s", inspect, strerror(errno));
    exit(EXIT_USAGE);
}

// The path of a tool that is a file holds wherever the program goes, and its children.
static void settle_tool(void)
{
    if (!options_tool_is_file(&options))
        return;
    if (options_tool_is_script(&options)) {
        if (!script_settle(&options, find_script_tool(own_path()))) {
            say("%s", options.error);
            exit(EXIT_USAGE);
        }
        return;
    }
    char *path = realpath(options.tool, NULL);
    if (path == NULL) {
        say("--tool=%s: %s", options.tool, strerror(errno));
        exit(EXIT_USAGE);
    }
    options.tool = path;
}

static _Noreturn void become_engine(const char **words, u32 word_count, char **arguments, int count)
{
    options.muninn_exe = own_path();
    options.as_valgrind = is_compat;
    const char *engine = find_beside(options.muninn_exe, "muninn-engine");
    char **engine_args = engine_argv(words, word_count, arguments, count);
    environment_hide(environ, allocate(environment_hidden_size(environ) + 1));
    execve(engine, engine_args, environ);
    if (errno == E2BIG) {
        say("the arguments and the environment are too long for execve with what muninn adds");
        exit(EXIT_CANNOT_RUN);
    }
    say("cannot start %s: %s", engine, strerror(errno));
    exit(EXIT_USAGE);
}

// A tool that is a file tells its options itself: loaded for that, it ends before any program runs.
static void answer_help_of_tool(void)
{
    const char *no_words[] = {"", NULL};

    if (options.help == NULL || !options_tool_is_file(&options))
        return;
    if (options.tool_options.count == OPTIONS_LIST_MAX)
        options.tool_options.count--;
    options.tool_options.items[options.tool_options.count++] = "--tool-help";
    options.exe = "/";
    become_engine(no_words, 1, NULL, 0);
}

int main(int argc, char **argv)
{
    u32 word_count;

    find_called_name(argc, argv);
    become_subcommand(argc, argv);
    options_tool_finder = find_tool;
    int index = parse_options(argc, argv);

    settle_tool();
    answer_help_of_tool();
    answer_help_and_version();
    if (index >= argc) {
        say("no program to run; usage: %s [options] program [arguments...]",
            is_compat ? "valgrind" : "muninn");
        return EXIT_USAGE;
    }
    settle_options();
    const char **words = resolve_program(argv[index], &word_count);
    warn_of_lost_privileges();

    become_engine(words, word_count, argv + index + 1, argc - index - 1);
}
