// SPDX-License-Identifier: MIT
//
// `muninn ps`: the programs that run under muninn. They are found by their executable,
// which is the engine; what only the monitor knows it is asked for.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/control/control_internal.h"

enum {
    ASK_MS = 5000, // for a monitor to answer, on a busy machine too
    COMMAND_SHOWN = 512,
};

typedef struct Program {
    i32 pid;
    u64 cpu_ms, age_ms;
    char tool[64];    // "-": not known
    char errors[24];  // "-": nobody counts
    char command[COMMAND_SHOWN];
} Program;

bool ps_is_engine(i32 pid)
{
    static const char engine[] = "/muninn-engine", deleted[] = " (deleted)";
    char path[32], exe[PATH_MAX];

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t n = readlink(path, exe, sizeof(exe) - 1);
    if (n <= 0)
        return false;
    exe[n] = '\0';
    size_t length = (size_t)n, tail = sizeof(deleted) - 1;
    if (length > tail && strcmp(exe + length - tail, deleted) == 0)
        exe[length -= tail] = '\0';
    return length >= sizeof(engine) - 1 && strcmp(exe + length - (sizeof(engine) - 1), engine) == 0;
}

// ----------------------------------------------------------------------- /proc

static ssize_t read_file(i32 pid, const char *name, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    if (n >= 0)
        text[n] = '\0';
    return n;
}

static u64 uptime_ms(void)
{
    double seconds = 0;
    FILE *file = fopen("/proc/uptime", "re");

    if (!file)
        return 0;
    if (fscanf(file, "%lf", &seconds) != 1)
        seconds = 0;
    fclose(file);
    return (u64)(seconds * 1000);
}

static void read_times(Program *program)
{
    char text[1024];
    unsigned long long user, system, start;
    u64 hz = (u64)sysconf(_SC_CLK_TCK);
    const char *behind = read_file(program->pid, "stat", text, sizeof(text)) > 0
                             ? strrchr(text, ')') : NULL; // the name may contain anything

    // Fields 14, 15 and 22 of proc(5); the first behind the name is 3.
    if (!behind || sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu"
                                      " %*d %*d %*d %*d %*d %*d %llu", &user, &system, &start) != 3)
        return;
    u64 started = start * 1000 / hz, now = uptime_ms();
    program->cpu_ms = (user + system) * 1000 / hz;
    program->age_ms = now > started ? now - started : 0;
}

static void read_command(Program *program)
{
    ssize_t n = read_file(program->pid, "cmdline", program->command, sizeof(program->command));

    if (n <= 0)
        snprintf(program->command, sizeof(program->command), "-");
    for (ssize_t i = 0; i + 1 < n; i++) {
        if (program->command[i] == '\0')
            program->command[i] = ' ';
    }
}

// ------------------------------------------------------------------ the monitor

typedef struct Answer {
    char text[4096];
    size_t size;
} Answer;

static void keep(void *arg, const char *text, size_t size)
{
    Answer *answer = arg;
    size_t room = sizeof(answer->text) - 1 - answer->size;

    size = size < room ? size : room;
    memcpy(answer->text + answer->size, text, size);
    answer->size += size;
    answer->text[answer->size] = '\0';
}

// The first word behind `name` at the beginning of a line.
static void find_word(const Answer *answer, const char *name, char *ret_word, size_t size)
{
    size_t length = strlen(name);

    snprintf(ret_word, size, "-");
    for (const char *line = answer->text; *line;) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            const char *word = line + length + strspn(line + length, " ");
            snprintf(ret_word, size, "%.*s", (int)strcspn(word, " \n"), word);
            return;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
}

static void ask_monitor(Program *program)
{
    Answer answer = {.size = 0};

    answer.text[0] = '\0';
    ctl_ask(program->pid, "status", ASK_MS, keep, &answer);
    find_word(&answer, "tool", program->tool, sizeof(program->tool));
    find_word(&answer, "errors", program->errors, sizeof(program->errors));
}

// --------------------------------------------------------------------- the list

static void print_time(u64 ms)
{
    if (ms < 3600 * 1000)
        printf(" %3llu:%02llu.%llu", (unsigned long long)(ms / 60000),
               (unsigned long long)(ms / 1000 % 60), (unsigned long long)(ms / 100 % 10));
    else
        printf(" %2lluh%02llum%02llu", (unsigned long long)(ms / 3600000),
               (unsigned long long)(ms / 60000 % 60), (unsigned long long)(ms / 1000 % 60));
}

static void print_row(const Program *program)
{
    printf("%7d %-10s", program->pid, program->tool);
    print_time(program->cpu_ms);
    print_time(program->age_ms);
    printf(" %7s ", program->errors);
    for (const char *c = program->command; *c; c++)
        putchar((u8)*c < ' ' || *c == 0x7f ? '?' : *c);
    putchar('\n');
}

static void print_json_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if ((u8)*c < ' ' || (u8)*c >= 0x7f)
            printf("\\u%04x", (u8)*c); // bytes as Latin-1: a command line need not be UTF-8
        else
            putchar(*c);
    }
    putchar('"');
}

static void print_json(const Program *program, bool is_first)
{
    bool has_monitor = strcmp(program->tool, "-") != 0;

    printf("%s\n  {\"pid\": %d, \"tool\": ", is_first ? "" : ",", program->pid);
    if (has_monitor)
        print_json_text(program->tool);
    else
        printf("null");
    printf(", \"cpu_ms\": %llu, \"age_ms\": %llu, \"errors\": %s, \"command\": ",
           (unsigned long long)program->cpu_ms, (unsigned long long)program->age_ms,
           has_monitor ? program->errors : "null");
    print_json_text(program->command);
    putchar('}');
}

static int list(bool json)
{
    DIR *dir = opendir("/proc");
    bool any = false;

    if (!dir) {
        fprintf(stderr, "muninn ps: /proc: %s\n", strerror(errno));
        return 1;
    }
    place_each(place_sweep, NULL);
    if (json)
        putchar('[');
    else
        puts("    PID TOOL            TIME      AGE  ERRORS COMMAND");
    for (struct dirent *entry; (entry = readdir(dir));) {
        Program program = {.pid = atoi(entry->d_name)};
        if (program.pid <= 0 || !ps_is_engine(program.pid))
            continue;
        read_times(&program);
        read_command(&program);
        ask_monitor(&program);
        if (json)
            print_json(&program, !any);
        else
            print_row(&program);
        any = true;
    }
    closedir(dir);
    if (json)
        printf("%s]\n", any ? "\n" : "");
    return 0;
}

int control_ps_main(int argc, char **argv)
{
    bool json = argc == 1 && strcmp(argv[0], "--json") == 0;

    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        puts("usage: muninn ps [--json]\nLists the programs that run under muninn.");
        return 0;
    }
    if (argc > 0 && !json) {
        fprintf(stderr, "usage: muninn ps [--json]\n");
        return 1;
    }
    return list(json);
}
