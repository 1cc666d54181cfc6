// SPDX-License-Identifier: MIT
// BUILD: -O2
// MUNINN:
// MUNINN: --trace-children=yes
//
// execve that fails leaves the caller as it was, with the right error: missing, not executable, a
// directory, no format, an empty file, too many arguments, a loop of links, a bad interpreter.
#include "guest.h"
#include <fcntl.h>
#include <sys/stat.h>

static void write_file(const char *name, const char *text, size_t size, int mode)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    CHECK(write(fd, text, size) == (ssize_t)size);
    fchmod(fd, mode);
    close(fd);
}

#define TRY(path) SHOW(execv(path, (char *[]){"x", NULL}))

int main(void)
{
    char dir[] = "exec.XXXXXX";
    CHECK(mkdtemp(dir) && chdir(dir) == 0);
    write_file("plain", "text", 4, 0600);
    write_file("garbage", "\001\002\003 not a program", 20, 0700);
    write_file("empty", "", 0, 0700);
    write_file("truncated", "\177ELF\002\001\001", 7, 0700);
    write_file("bad-interpreter", "#!/no/such/interpreter\n", 23, 0700);
    write_file("script-of-text", "#!plain\n", 8, 0700);
    CHECK(symlink("loop", "loop") == 0);
    TRY("missing");
    TRY("");
    TRY("plain");
    TRY("garbage");
    TRY("empty");
    TRY("truncated");
    TRY("bad-interpreter");
    TRY("script-of-text");
    TRY("/");
    TRY("plain/x");
    TRY("loop");
    static char long_name[5000];
    memset(long_name, 'n', sizeof long_name - 1);
    TRY(long_name);

    size_t size = 4 << 20;
    char *huge = malloc(size);
    memset(huge, 'a', size - 1);
    huge[size - 1] = 0;
    long result = execv("/bin/true", (char *[]){"true", huge, NULL});
    say("huge argument: %ld %s\n", result, error_name(errno));
    int writer = open("busy", O_CREAT | O_RDWR, 0700);
    CHECK(write(writer, "#!/bin/sh\n", 10) == 10);
    pid_t child = fork();
    if (child == 0) {
        close(writer);
        execl("/bin/sh", "sh", "-c", "exit 21", (char *)NULL);
    }
    wait_and_show("still able to fork and exec", child);
    return 0;
}
