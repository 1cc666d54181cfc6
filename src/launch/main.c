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
#include "launch/options.h"

enum {
    EXIT_USAGE = 1,
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

// glibc's execvp searches these when PATH is not set.
#define DEFAULT_PATH "/bin:/usr/bin"

static Options options;
static Program program;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[2 * PATH_MAX + 512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    // One write, so that the line stays whole among other processes' output.
    dprintf(STDERR_FILENO, "muninn: %s\n", line);
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

// Options of the environment come first, so that the command line wins.
static int parse_options(int argc, char **argv)
{
    const char *text = getenv("MUNINN_OPTS");
    char *copy = strdup(text != NULL ? text : "");

    if (copy == NULL)
        die_out_of_memory();
    u32 words_max = (u32)strlen(copy) + 1;
    char **all = allocate((words_max + (size_t)argc + 1) * sizeof(*all));
    int count = (int)options_split_text(copy, all + 1, words_max);
    for (int i = 1; i <= count; i++) {
        if (all[i][0] != '-' || all[i][1] == '\0') {
            say("MUNINN_OPTS: '%s' is not an option", all[i]);
            exit(EXIT_USAGE);
        }
    }
    memcpy(all + 1 + count, argv + 1, ((size_t)argc - 1) * sizeof(*all));
    options_init(&options);
    int index = options_parse(argc + count, all, &options);
    if (index >= 0 && options.muninn_exe != NULL) {
        say("unknown option --muninn-exe; muninn --help lists them");
        exit(EXIT_USAGE);
    }
    if (index < 0 || options_settle(&options) < 0) {
        bool is_text = index < 0 && options.error_index <= count;
        say("%s%s", is_text ? "MUNINN_OPTS: " : "", options.error);
        exit(EXIT_USAGE);
    }
    return index - count;
}

static void answer_help_and_version(void)
{
    if (options.version) {
        puts("muninn " MUNINN_VERSION);
        exit(EXIT_SUCCESS);
    }
    if (options.help == NULL)
        return;
    if (!help_print(options.help)) {
        say("--help=%s: no such topic; name a tool, or nothing", options.help);
        exit(EXIT_USAGE);
    }
    exit(EXIT_SUCCESS);
}

// A child that has changed its directory shall log beside its parent.
static void make_log_file_absolute(void)
{
    char directory[PATH_MAX];
    char *absolute;

    if (options.log_file[0] == '/' || getcwd(directory, sizeof(directory)) == NULL)
        return;
    // A percent sign in the name of the directory is no part of the template.
    size_t size = 2 * strlen(directory) + strlen(options.log_file) + 2;
    char *at = absolute = allocate(size);
    for (const char *c = directory; *c != '\0'; c++) {
        *at++ = *c;
        if (*c == '%')
            *at++ = '%';
    }
    snprintf(at, size - (size_t)(at - absolute), "/%s", options.log_file);
    options.log_file = absolute;
}

static void check_log(void)
{
    char path[PATH_MAX];

    if (options.log_file != NULL) {
        int error = options_expand_path(options.log_file, getpid(), 0, path, sizeof(path));
        if (error == -EINVAL)
            say("--log-file=%s: %% is followed by p, n, %% or q{VAR}, and VAR must be set",
                options.log_file);
        else if (error != 0)
            say("--log-file=%s: %s", options.log_file, strerror(-error));
        if (error != 0)
            exit(EXIT_USAGE);
        make_log_file_absolute();
    } else if (options.log_fd != STDERR_FILENO && fcntl(options.log_fd, F_GETFD) < 0) {
        say("--log-fd=%d: no such descriptor is open", options.log_fd);
        exit(EXIT_USAGE);
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

// In a build tree the engine is beside the launcher; installed, in libexec.
static const char *find_engine(const char *launcher)
{
    static const char *const places[] = {"muninn-engine", "../libexec/muninn/muninn-engine"};
    static char path[PATH_MAX + 64];
    int directory_len = (int)(strrchr(launcher, '/') - launcher);

    for (u32 i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(path, sizeof(path), "%.*s/%s", directory_len, launcher, places[i]);
        if (access(path, F_OK) == 0)
            return path;
    }
    say("incomplete installation: there is no muninn-engine in %.*s or its ../libexec/muninn",
        directory_len, launcher);
    exit(EXIT_USAGE);
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

int main(int argc, char **argv)
{
    int index = parse_options(argc, argv);
    u32 word_count;

    answer_help_and_version();
    if (index == argc) {
        say("no program to run; usage: muninn [options] program [arguments...]");
        return EXIT_USAGE;
    }
    check_log();
    const char **words = resolve_program(argv[index], &word_count);
    warn_of_lost_privileges();

    options.muninn_exe = own_path();
    const char *engine = find_engine(options.muninn_exe);
    char **engine_args = engine_argv(words, word_count, argv + index + 1, argc - index - 1);
    environment_hide(environ, allocate(environment_hidden_size(environ) + 1));
    execve(engine, engine_args, environ);
    if (errno == E2BIG) {
        say("the arguments and the environment are too long for execve with what muninn adds");
        return EXIT_CANNOT_RUN;
    }
    say("cannot start %s: %s", engine, strerror(errno));
    return EXIT_USAGE;
}
