// SPDX-License-Identifier: MIT
//
// System calls in known numbers.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    char byte = '.';
    for (int i = 0; i < 100; i++)
        syscall(SYS_getppid);
    for (int i = 0; i < 7; i++)
        open("/no/such/file", O_RDONLY);
    for (int i = 0; i < 20; i++)
        syscall(SYS_write, 1, &byte, 1);
    usleep(2000);
    return 0;
}
