// SPDX-License-Identifier: MIT
//
// Functions of one byte each, thousands in a page, all called, then unmapped and written anew: what
// forgetting the code of a page costs must grow with the number of blocks and not with its square.
#include "guest.h"
#include <sys/mman.h>

#define BYTES (64 * 4096)
#define RET 0xc3

typedef void Function(void);

static void call_all(unsigned char *code)
{
    for (int i = 0; i < BYTES; i++)
        ((Function *)(code + i))();
}

int main(void)
{
    int rwx = PROT_READ | PROT_WRITE | PROT_EXEC;
    unsigned char *code = mmap(NULL, BYTES, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memset(code, RET, BYTES);
    call_all(code);
    say("called\n");
    memset(code, RET, BYTES);
    ((Function *)code)();
    say("written and called\n");
    SHOW(munmap(code, BYTES));
    return 0;
}
