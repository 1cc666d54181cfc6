// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// MUNINN:
// MUNINN: --trace-children=yes
//
// Programs started by this one: a script, a script with an argument, itself through /proc/self/exe,
// execveat on a descriptor, an empty environment, close-on-exec, PATH search, and a chain of three.
#include "guest.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static int second_life(int argc, char **argv)
{
    say("second: argc %d", argc);
    for (int i = 1; i < argc; i++)
        say(" [%s]", argv[i]);
    int count = 0;
    while (environ[count])
        count++;
    say(" environment %d, fd 30 %s, fd 31 %s\n", count, fcntl(30, F_GETFD) < 0 ? "closed" : "open",
        fcntl(31, F_GETFD) < 0 ? "closed" : "open");
    if (argc > 2 && atoi(argv[2]) > 0) {
        char next[16];
        snprintf(next, sizeof next, "%d", atoi(argv[2]) - 1);
        execl("/proc/self/exe", argv[0], "chain", next, (char *)NULL);
    }
    return 30 + argc;
}

static void write_script(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0700);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

#define CHILD(name, call) \
    do { \
        pid_t child = fork(); \
        if (child == 0) { \
            (void)(call); \
            say("%s: %s\n", name, error_name(errno)); \
            _exit(99); \
        } \
        wait_and_show(name, child); \
    } while (0)

int main(int argc, char **argv)
{
    if (argc > 1)
        return second_life(argc, argv);
    char dir[] = "exec.XXXXXX", line[4200];
    CHECK(mkdtemp(dir) && chdir(dir) == 0);
    dup2(0, 30);
    dup3(0, 31, O_CLOEXEC);
    write_script("guest-script", "#!/bin/sh\necho script \"$1\" \"$#\"\nexit 12\n");
    snprintf(line, sizeof line, "#!%s one argument\n", argv[0]);
    write_script("own-script", line);
    CHILD("own script", execl("./own-script", "name", "more", (char *)NULL));
    CHILD("script", execl("./guest-script", "script", "a b", "c", (char *)NULL));
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    CHILD("self", execl("/proc/self/exe", argv[0], "again", (char *)NULL));
    CHILD("chain", execl("/proc/self/exe", argv[0], "chain", "3", (char *)NULL));
    char *arguments[] = {argv[0], "by descriptor", NULL}, *nothing[] = {NULL};
    CHILD("execveat", syscall(SYS_execveat, fd, "", arguments, environ, 0x1000));
    CHILD("fexecve", fexecve(fd, arguments, environ));
    CHILD("no environment", execve(argv[0], arguments, nothing));
    setenv("PATH", "/usr/bin:/bin:.", 1);
    CHILD("by path", execlp("guest-script", "script", "found", (char *)NULL));
    CHILD("true", execl("/bin/true", "true", (char *)NULL));
    CHILD("false", execl("/bin/false", "false", (char *)NULL));
    say("system %d\n", system("exit 14") >> 8);
    return 0;
}
