// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
//
// Other code at the same address: by munmap and mmap, by MAP_FIXED over it, by mremap onto it, by a
// file mapping, and by MADV_DONTNEED that turns code into zeroes (`add [rax], al`).
#include "smc.h"
#include <setjmp.h>

enum { RWX = PROT_READ | PROT_WRITE | PROT_EXEC, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };
static sigjmp_buf home;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    siglongjmp(home, 1);
}

static int faults_when_called(void *code)
{
    if (sigsetjmp(home, 1))
        return 1;
    __asm__ volatile("xor %%eax, %%eax; call *%0" : : "r"(code) : "rax", "memory", "cc");
    return 0;
}

int main(void)
{
    on_signal(SIGSEGV, handler, 0);
    uint8_t *page = map_pages(PAGE, RWX);
    int fd = memfd_create("code", 0);
    int wrong[5] = {0};
    for (volatile int i = 0; i < 200; i++) {
        put_return(page, i);
        wrong[0] += call_code(page) != i;
        munmap(page, PAGE);
        wrong[0] += !faults_when_called(page);
        CHECK(mmap(page, PAGE, RWX, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0) == page);

        put_return(page, i + 1);
        wrong[1] += call_code(page) != i + 1;
        CHECK(mmap(page, PAGE, RWX, PRIVATE | MAP_FIXED, -1, 0) == page);
        wrong[1] += !faults_when_called(page);

        uint8_t *other = map_pages(PAGE, RWX);
        put_return(other, i + 2);
        wrong[2] += call_code(other) != i + 2;
        CHECK(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
        wrong[2] += call_code(page) != i + 2 || !faults_when_called(other);

        uint8_t code[6];
        put_return(code, i + 3);
        CHECK(pwrite(fd, code, 6, 0) == 6);
        CHECK(mmap(page, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == page);
        wrong[3] += call_code(page) != i + 3;

        CHECK(mmap(page, PAGE, RWX, PRIVATE | MAP_FIXED, -1, 0) == page);
        put_return(page, i + 4);
        wrong[4] += call_code(page) != i + 4;
        madvise(page, PAGE, MADV_DONTNEED);
        wrong[4] += !faults_when_called(page);
    }
    static const char *const names[] = {"munmap", "fixed", "mremap", "file", "dontneed"};
    for (int i = 0; i < 5; i++)
        say("%s: wrong %d\n", names[i], wrong[i]);
    return 0;
}
