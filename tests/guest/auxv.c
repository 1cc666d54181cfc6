// SPDX-License-Identifier: MIT
// BUILD[pie]: -O2 -pie -fPIE
// BUILD[nonpie]: -O2 -no-pie -fno-pie
// BUILD[static]: -O2 -static
// BUILD[staticpie]: -O2 -static-pie -fPIE
// RUN: x
//
// The auxiliary vector tells the truth about this program: which tags it has, and how each relates
// to the image, the stack and the process.
#include "guest.h"
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

extern const Elf64_Ehdr __ehdr_start;
extern void _start(void);
extern char **environ;

static bool on_stack(uint64_t address, char **argv)
{
    return address > (uint64_t)argv && address < (uint64_t)argv + (1 << 20);
}

int main(int argc, char **argv)
{
    const Elf64_auxv_t *auxv;
    char **end = environ;
    while (*end)
        end++;
    auxv = (const Elf64_auxv_t *)(end + 1);
    uint64_t tags = 0;
    for (int i = 0; auxv[i].a_type != AT_NULL; i++)
        if (auxv[i].a_type < 64)
            tags |= 1UL << auxv[i].a_type;
    static const int expected[] = {AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE,  AT_FLAGS,
                                   AT_ENTRY, AT_UID,  AT_EUID,  AT_GID,    AT_EGID,  AT_PLATFORM,
                                   AT_HWCAP, AT_CLKTCK, AT_SECURE, AT_RANDOM, AT_HWCAP2, AT_EXECFN};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        say("%d:%d ", expected[i], (int)(tags >> expected[i] & 1));
    say("\nargc %d, argv[argc] null %d\n", argc, argv[argc] == NULL);

    uint64_t image = (uint64_t)&__ehdr_start;
    say("phdr %d phent %lu phnum %d\n", getauxval(AT_PHDR) == image + __ehdr_start.e_phoff,
        getauxval(AT_PHENT), getauxval(AT_PHNUM) == __ehdr_start.e_phnum);
    say("entry %d\n", getauxval(AT_ENTRY) == (uint64_t)_start);
    bool has_interpreter = false;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
    for (unsigned i = 0; i < getauxval(AT_PHNUM); i++)
        has_interpreter |= segments[i].p_type == PT_INTERP;
    uint64_t base = getauxval(AT_BASE);
    say("interpreter %d, base set %d, base is an image %d\n", has_interpreter, base != 0,
        base ? memcmp((void *)base, ELFMAG, SELFMAG) == 0 : -1);
    say("execfn is argv[0] %d, on the stack %d\n",
        strcmp((char *)getauxval(AT_EXECFN), argv[0]) == 0, on_stack(getauxval(AT_EXECFN), argv));
    const uint8_t *random = (const uint8_t *)getauxval(AT_RANDOM);
    int distinct = 0;
    for (int i = 1; i < 16; i++)
        distinct += random[i] != random[0];
    say("random on the stack %d, varied %d\n", on_stack((uint64_t)random, argv), distinct > 8);
    say("page %lu clock %lu secure %lu platform %s\n", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK),
        getauxval(AT_SECURE), (char *)getauxval(AT_PLATFORM));
    say("uid %d euid %d gid %d egid %d\n", getauxval(AT_UID) == getuid(),
        getauxval(AT_EUID) == geteuid(), getauxval(AT_GID) == getgid(),
        getauxval(AT_EGID) == getegid());
    for (int i = 0; auxv[i].a_type != AT_NULL; i++) // glibc has its own idea of AT_HWCAP
        if (auxv[i].a_type == AT_HWCAP || auxv[i].a_type == AT_HWCAP2)
            say("tag %lu = %lx\n", auxv[i].a_type, auxv[i].a_un.a_val);
    return 0;
}
