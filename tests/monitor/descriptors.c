// SPDX-License-Identifier: MIT
//
// Mistakes with descriptors, which every checker of its kind finds alike: one left open, one
// closed twice, one used after it was closed.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static int open_one(void)
{
    int fd = open("/dev/null", O_RDONLY);
    __asm__ volatile("");
    return fd;
}

__attribute__((noinline, noclone)) static void close_one(int fd)
{
    close(fd);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    int left_open = open_one();
    int closed = open_one();
    char byte;
    if (argc > 1 && strcmp(argv[1], "clean") == 0) {
        close(left_open);
        close(closed);
        return 0;
    }
    close_one(closed);
    close_one(closed);
    return (int)read(closed, &byte, 1) + 1;
}
