// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// Memory that a child does not get: it may be mapped there again, and the rest works.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 20, PART = 1 << 16 };

int main(void)
{
    char *all = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status;
    all[0] = all[PART] = 7;
    madvise(all, PART, MADV_DONTFORK);
    if (fork() == 0) {
        char *again = mmap(all, PART, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        char *block = malloc(1000);
        block[999] = 1;
        int result = again == all && again[0] == 0 && all[PART] == 7 ? block[999] : 0;
        free(block);
        _exit(result);
    }
    wait(&status);
    printf("%d %d\n", WEXITSTATUS(status), all[0] + all[PART]);
    return 0;
}
