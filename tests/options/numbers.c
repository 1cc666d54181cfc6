// SPDX-License-Identifier: MIT
//
// Which numbers descriptors get.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    int pair[2], ends[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char byte = 0;
    if (pipe(pair) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    int copy = dup(file), chosen = dup2(file, 77);
    int works = write(pair[1], "x", 1) == 1 && read(pair[0], &byte, 1) == 1 && byte == 'x' &&
                write(ends[0], "y", 1) == 1 && read(ends[1], &byte, 1) == 1 && byte == 'y';
    int high = file > 200 && pair[0] > 200 && pair[1] > 200 && ends[0] > 200 && ends[1] > 200 &&
               copy > 200;
    int low = file < 20 && pair[0] < 20 && pair[1] < 20 && copy < 20;
    printf("%s, works %d, chosen %d, close-on-exec %d\n", high ? "high" : low ? "low" : "mixed",
           works, chosen, fcntl(file, F_GETFD));
    close(0);
    int again = open("/dev/null", O_RDONLY);
    printf("standard input again: %s\n", again == 0 ? "0" : "high");
    return 0;
}
