// SPDX-License-Identifier: MIT
//
// `muninn ctl PID COMMAND [ARGUMENT...]`: one command, its answer on standard output,
// 0 or 1 as it went. What the answer contains comes from the program in the end, so
// nothing but text reaches the terminal.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "monitor/control/control_internal.h"

enum { EXIT_ASKED_WRONGLY = 1 };

// ------------------------------------------------------------------ the question

static i64 clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (i64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int receive_answer(int fd, int timeout_ms, AnswerFn *fn, void *arg)
{
    static char packet[PACKET_BYTES_MAX + 1];
    i64 until = clock_ms() + timeout_ms;

    for (;;) {
        i64 left = timeout_ms ? until - clock_ms() : -1;
        struct pollfd ready = {fd, POLLIN, 0};
        if (timeout_ms && (left <= 0 || poll(&ready, 1, (int)left) <= 0))
            return -1;
        ssize_t n = recv(fd, packet, sizeof(packet), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 1)
            return -1;
        if (packet[0] == PACKET_END)
            return n > 1 ? (u8)packet[1] : 1;
        if (packet[0] == PACKET_TEXT)
            fn(arg, packet + 1, (size_t)n - 1);
    }
}

int ctl_ask(i32 pid, const char *command, int timeout_ms, AnswerFn *fn, void *arg)
{
    int status = -1;
    int fd = place_connect(pid);

    if (fd < 0)
        return -1;
    if (send(fd, command, strlen(command), MSG_NOSIGNAL) >= 0)
        status = receive_answer(fd, timeout_ms, fn, arg);
    close(fd);
    return status;
}

// ------------------------------------------------------------------- the command

static void print_answer(void *arg, const char *text, size_t size)
{
    bool *any = arg;

    *any = true;
    for (size_t i = 0; i < size; i++) {
        u8 c = (u8)text[i];
        bool is_control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
        putchar(is_control ? '?' : c);
    }
}

static void print_usage(FILE *out)
{
    fputs("usage: muninn ctl PID COMMAND [ARGUMENT...]\n"
          "       muninn ctl --list-commands\n"
          "`muninn ps` lists the programs that can be talked to.\n",
          out);
}

static int list_commands(void)
{
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        const ControlCommand *command = &control_commands[i];
        char usage[64];
        snprintf(usage, sizeof(usage), "%s%s%s", command->name, *command->arguments ? " " : "",
                 command->arguments);
        printf("  %-20s %s", usage, command->help);
        printf(*command->old_name ? " (%s)\n" : "\n", command->old_name);
    }
    puts("A tool may have commands of its own: `muninn ctl PID help` lists those too.");
    return 0;
}

void ctl_explain_silence(const char *subcommand, i32 pid)
{
    struct stat st;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d", pid);
    if (stat(path, &st) != 0)
        fprintf(stderr, "muninn %s: there is no process %d\n", subcommand, pid);
    else if (st.st_uid != geteuid())
        fprintf(stderr, "muninn %s: process %d is user %u's, who alone can talk to it\n",
                subcommand, pid, st.st_uid);
    else if (!ps_is_engine(pid))
        fprintf(stderr, "muninn %s: process %d does not run under muninn\n", subcommand, pid);
    else
        fprintf(stderr,
                "muninn %s: process %d has no monitor to talk to: its tool reports nothing,\n"
                "or it is a child that has not reported anything yet\n",
                subcommand, pid);
}

// The words with a space between them. False: too long.
static bool join(int argc, char **argv, char line[COMMAND_BYTES_MAX + 1])
{
    size_t size = 0;

    for (int i = 0; i < argc; i++) {
        size_t length = strlen(argv[i]);
        if (size + length + 1 > COMMAND_BYTES_MAX)
            return false;
        if (i > 0)
            line[size++] = ' ';
        memcpy(line + size, argv[i], length);
        size += length;
    }
    line[size] = '\0';
    return true;
}

static bool parse_pid(const char *text, i32 *ret_pid)
{
    char *end;
    errno = 0;
    long pid = strtol(text, &end, 10);

    if (end == text || *end || errno || pid <= 0 || pid > INT_MAX)
        return false;
    *ret_pid = (i32)pid;
    return true;
}

int control_ctl_main(int argc, char **argv)
{
    char line[COMMAND_BYTES_MAX + 1];
    bool any = false;
    i32 pid;

    signal(SIGPIPE, SIG_DFL);
    if (argc > 0 && strcmp(argv[0], "--list-commands") == 0)
        return list_commands();
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        print_usage(stdout);
        return list_commands();
    }
    if (argc < 2 || !parse_pid(argv[0], &pid)) {
        if (argc >= 2)
            fprintf(stderr, "muninn ctl: %s is not the number of a process\n", argv[0]);
        print_usage(stderr);
        return EXIT_ASKED_WRONGLY;
    }
    if (!join(argc - 1, argv + 1, line)) {
        fprintf(stderr, "muninn ctl: a command has at most %d bytes\n", COMMAND_BYTES_MAX);
        return EXIT_ASKED_WRONGLY;
    }
    int status = ctl_ask(pid, line, 0, print_answer, &any);
    if (status < 0 && !any)
        ctl_explain_silence("ctl", pid);
    else if (status < 0)
        fprintf(stderr, "muninn ctl: process %d has ended\n", pid);
    return fflush(stdout) == 0 && status >= 0 ? status : EXIT_ASKED_WRONGLY;
}
