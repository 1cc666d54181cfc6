// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// STRESS: tiny-blocks
//
// Time through libc, and through the vdso found by hand in the auxiliary vector: it parses as an
// ELF file, has its symbols, and its clock agrees with the system call's.
#include "guest.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>

typedef int ClockFunction(clockid_t, struct timespec *);

static void *find_symbol(const uint8_t *image, const char *wanted)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    uint64_t load = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(image + segments[i].p_offset);
        if (segments[i].p_type == PT_LOAD)
            load = (uint64_t)image + segments[i].p_offset - segments[i].p_vaddr;
    }
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = (const Elf64_Sym *)(load + dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_STRTAB)
            strings = (const char *)(load + dynamic->d_un.d_ptr);
    }
    for (int i = 1; i < 64; i++)
        if (strcmp(strings + symbols[i].st_name, wanted) == 0)
            return (void *)(load + symbols[i].st_value);
    return NULL;
}

static int64_t nanoseconds(struct timespec t)
{
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void)
{
    struct timespec first, second;
    long backwards = 0;
    clock_gettime(CLOCK_MONOTONIC, &first);
    for (int i = 0; i < 50000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &second);
        backwards += nanoseconds(second) < nanoseconds(first);
        first = second;
    }
    struct timeval tv;
    gettimeofday(&tv, NULL);
    say("backwards %ld, near time() %d\n", backwards, labs(tv.tv_sec - time(NULL)) <= 2);

    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    if (!image || memcmp(image, ELFMAG, SELFMAG) != 0) {
        say("no vdso image\n");
        return 0;
    }
    ClockFunction *clock = (ClockFunction *)find_symbol(image, "__vdso_clock_gettime");
    say("symbol found %d\n", clock != NULL);
    struct timespec by_vdso, by_kernel;
    for (int i = 0; i < 1000; i++) {
        CHECK(clock(CLOCK_REALTIME, &by_vdso) == 0);
        CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, &by_kernel) == 0);
        CHECK(nanoseconds(by_kernel) - nanoseconds(by_vdso) >= 0);
        CHECK(nanoseconds(by_kernel) - nanoseconds(by_vdso) < 5000000000LL);
    }
    say("bad clock %d\n", clock(-1000, &by_vdso));
    unsigned cpu = 99999;
    int (*getcpu_by_vdso)(unsigned *, unsigned *, void *) = find_symbol(image, "__vdso_getcpu");
    int result = getcpu_by_vdso(&cpu, NULL, NULL);
    say("getcpu %d %d\n", result, cpu < 4096);
    return 0;
}
