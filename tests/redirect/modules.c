// SPDX-License-Identifier: MIT
//
// A library that comes, goes, and comes again at the same address; another file
// in its place; text that becomes executable by mprotect.
// BUILD: dynamic now
// LIBRARY: modules_library.c
// STDOUT: 10 times, 1 address, in a copy 14
// LOG: selftest_counted* calls 21 returns 21
// LOG: selftest_replaced calls 10 returns 0
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long Function(long a, ...);

// Maps the library's text at a place of its own, first without PROT_EXEC, and
// calls a function there that needs nothing else.
static long call_in_copy(const char *path, unsigned long value)
{
    Elf64_Ehdr h;
    Elf64_Phdr p[32];
    int fd = open(path, O_RDONLY);
    if (fd < 0 || pread(fd, &h, sizeof h, 0) != sizeof h || h.e_phnum > 32)
        return -1;
    if (pread(fd, p, h.e_phnum * sizeof *p, (off_t)h.e_phoff) < 0)
        return -1;
    for (int i = 0; i < h.e_phnum; i++) {
        if (p[i].p_type != PT_LOAD || !(p[i].p_flags & PF_X))
            continue;
        char *at = mmap(NULL, p[i].p_filesz, PROT_READ, MAP_PRIVATE, fd, (off_t)p[i].p_offset);
        mprotect(at, p[i].p_filesz, PROT_READ | PROT_EXEC);
        return ((Function *)(at + (value - p[i].p_vaddr)))(7);
    }
    return -1;
}

int main(int argc, char **argv)
{
    void *seen = NULL;
    int addresses = 0, times = 0;
    unsigned long value = 0;
    for (int i = 0; i < 10 && argc > 2; i++) {
        void *library = dlopen(argv[2], RTLD_NOW);
        if (!library)
            return puts(dlerror());
        Function *counted = (Function *)dlsym(library, "selftest_counted_here");
        Function *outer = (Function *)dlsym(library, "outer");
        Function *replaced = (Function *)dlsym(library, "selftest_replaced");
        times += counted(3) == 6 && outer(4) == 9 && replaced(5) == 10;
        addresses += seen != (void *)counted;
        seen = (void *)counted;
        struct link_map *map;
        dlinfo(library, RTLD_DI_LINKMAP, &map);
        value = (unsigned long)counted - map->l_addr;
        dlclose(library);
    }
    printf("%d times, %d address, in a copy %ld\n", times, addresses, call_in_copy(argv[2], value));
    return 0;
}
