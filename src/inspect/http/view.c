// SPDX-License-Identifier: MIT
//
// `muninn view FILE…` and `muninn view PID`: opens, serves, shows, until Ctrl-C.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/http/export.h"
#include "inspect/http/http.h"
#include "inspect/http/live.h"
#include "inspect/http/server.h"

extern char **environ;

typedef struct ViewOptions {
    ServerConfig server;
    const char *export;
    bool opens;
    int file_count;
} ViewOptions;

static const char usage[] =
    "usage: muninn view [--port=N] [--host=ADDRESS] [--no-open] [--export=FILE.html] FILE|PID...\n"
    "\n"
    "Shows heap recordings (muninn.heap.PID) and memcheck's reports (JSON, XML) in the browser.\n"
    "A PID is that of a program that runs under muninn now.\n"
    "\n"
    "  --port=N            listen on this port; any that is free else\n"
    "  --no-open           only print the address\n"
    "  --host=ADDRESS      listen there instead of on the loopback address\n"
    "  --export=FILE.html  write one page that needs no server, and end\n";

// ------------------------------------------------------------------------- arguments

// The value of "--name=value"; NULL: it is another word.
static const char *value_of(const char *word, const char *name)
{
    size_t size = strlen(name);

    return strncmp(word, name, size) == 0 && word[size] == '=' ? word + size + 1 : NULL;
}

static bool parse_port(const char *text, u16 *ret_port)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    if (end == text || *end || port > 65535) {
        fprintf(stderr, "muninn view: --port=%s: a port is a number up to 65535\n", text);
        return false;
    }
    *ret_port = (u16)port;
    return true;
}

// Options are taken out of argv; what stays are files.
static bool parse_options(int argc, char **argv, ViewOptions *options)
{
    bool only_files = false;

    *options = (ViewOptions){.opens = true};
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *value;
        if (only_files || word[0] != '-' || strcmp(word, "-") == 0) {
            argv[options->file_count++] = argv[i];
        } else if (strcmp(word, "--") == 0) {
            only_files = true;
        } else if (strcmp(word, "--no-open") == 0) {
            options->opens = false;
        } else if ((value = value_of(word, "--port"))) {
            if (!parse_port(value, &options->server.port))
                return false;
        } else if ((value = value_of(word, "--host")) && *value) {
            options->server.host = value;
        } else if ((value = value_of(word, "--export")) && *value) {
            options->export = value;
        } else {
            fprintf(stderr, "muninn view: there is no option %s\n%s", word, usage);
            return false;
        }
    }
    if (options->file_count == 0)
        fputs(usage, stderr);
    return options->file_count > 0;
}

// ------------------------------------------------------------------------------ files

static bool is_pid(const char *word, i32 *ret_pid)
{
    char *end;
    long pid = strtol(word, &end, 10);

    if (end == word || *end || pid <= 0 || pid > INT_MAX || access(word, F_OK) == 0)
        return false;
    *ret_pid = (i32)pid;
    return true;
}

static OpenFile *open_word(Viewer *viewer, const char *word)
{
    char *error = NULL;
    i32 pid;

    if (!is_pid(word, &pid))
        return file_open(viewer, word);
    char *path = live_find_recording(pid, &error);
    OpenFile *file = path ? file_open(viewer, path) : NULL;
    if (!file)
        fprintf(stderr, "muninn view: %s\n", error ? error : word);
    free(error);
    free(path);
    return file;
}

// True if there is something to show. What cannot be read is shown as such beside the others.
static bool open_files(Viewer *viewer, char **words, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++) {
        OpenFile *file = open_word(viewer, words[i]);
        if (!file)
            continue;
        if (file->kind == FILE_UNREADABLE)
            fprintf(stderr, "muninn view: %s\n", file->error);
        for (u32 k = 0; k < file->warning_count; k++)
            fprintf(stderr, "muninn view: %s: %s\n", file->name, file->warnings[k]);
        any |= file->kind != FILE_UNREADABLE;
    }
    return any;
}

// ---------------------------------------------------------------------------- browser

static bool has_browser(void)
{
    return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") || getenv("BROWSER");
}

// A server that was killed has left its file; the number in its name is the server's pid.
static void remove_stale_redirects(const char *folder)
{
    DIR *dir = opendir(folder);
    struct stat st;
    int pid;

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (sscanf(entry->d_name, "muninn-view-%9d-", &pid) != 1 || kill(pid, 0) == 0 ||
            errno != ESRCH)
            continue;
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_uid == geteuid())
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

// The address has the token, and a command line can be read by all users: so the browser is
// given a file that only this user can read, which leads there.
static bool write_redirect(const char *url, char path[PATH_MAX])
{
    const char *folder = getenv("XDG_RUNTIME_DIR");

    folder = folder && *folder ? folder : "/tmp";
    remove_stale_redirects(folder);
    snprintf(path, PATH_MAX, "%s/muninn-view-%d-XXXXXX.html", folder, (int)getpid());
    int fd = mkostemps(path, 5, O_CLOEXEC);
    if (fd < 0)
        return false;
    dprintf(fd,
            "<!doctype html><meta charset=\"utf-8\"><title>Muninn</title>"
            "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">Muninn</a>\n",
            url, url);
    close(fd);
    return true;
}

static bool open_browser(const char *path)
{
    char *arguments[] = {"xdg-open", (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int failure = posix_spawnp(&pid, "xdg-open", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure == 0;
}

// ------------------------------------------------------------------------------ main

static void wait_for_end(void)
{
    sigset_t signals;
    int number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigwait(&signals, &number);
}

// Before any thread is started: all of them have these blocked, and sigwait() gets them.
static void block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(Viewer *viewer, const ViewOptions *options)
{
    char *error = NULL, redirect[PATH_MAX];

    block_signals();
    Server *server = server_start(viewer, &options->server, &error);
    if (!server) {
        fprintf(stderr, "muninn view: %s\n", error ? error : "the server cannot be started");
        free(error);
        return 1;
    }
    if (options->server.host)
        fprintf(stderr,
                "muninn view: with --host=%s others can reach this page; it is not encrypted,\n"
                "and whoever learns of the address below can read the recordings\n",
                options->server.host);
    printf("muninn view: %s   (Ctrl-C ends it)\n", server_url(server));
    fflush(stdout);
    bool has_redirect =
        options->opens && has_browser() && write_redirect(server_url(server), redirect);
    if (has_redirect)
        open_browser(redirect);
    wait_for_end();
    if (has_redirect)
        unlink(redirect);
    // A worker may be amid a long walk: nothing of it is worth waiting for.
    _exit(0);
}

int http_view_main(int argc, char **argv)
{
    Viewer *viewer = calloc(1, sizeof(*viewer));
    ViewOptions options;
    char *error = NULL;

    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (!viewer || !parse_options(argc, argv, &options)) {
        free(viewer);
        return 1;
    }
    bool any = open_files(viewer, argv, options.file_count);
    int status = 1;
    if (viewer->file_count && !options.export)
        status = serve(viewer, &options);
    else if (any && export_write(viewer, options.export, &error))
        status = 0;
    else if (any)
        fprintf(stderr, "muninn view: %s\n", error ? error : "the page cannot be written");
    free(error);
    for (u32 i = 0; i < viewer->file_count; i++)
        file_free(viewer->files[i]);
    free(viewer);
    return status;
}
