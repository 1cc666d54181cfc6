// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// Code is mapped from a file, and the file is written: by write, pwrite, writev, copy_file_range,
// sendfile, through other descriptors, before and after a dup2, in shared and private mappings whose
// pages nobody has copied.
#include "smc.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static int wrong;

static void expect(uint8_t *code, int value, const char *how)
{
    int got = call_code(code);
    if (got != value) {
        wrong++;
        say("%s: old code\n", how);
    }
}

static void try_mapping(int flags, const char *what)
{
    int fd = memfd_create("code", 0), source = memfd_create("source", 0), ends[2];
    uint8_t code[16];
    CHECK(ftruncate(fd, PAGE) == 0 && pipe(ends) == 0);
    put_return(code, 1);
    CHECK(write(fd, code, 6) == 6);
    uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, flags, fd, 0);
    CHECK(page != MAP_FAILED);
    expect(page, 1, "first");
    for (int i = 10; i < 200; i += 10) {
        put_return(code, i);
        CHECK(pwrite(fd, code, 6, 0) == 6);
        expect(page, i, "pwrite");
        put_return(code, i + 1);
        CHECK(lseek(fd, 0, SEEK_SET) == 0 && write(fd, code, 6) == 6);
        expect(page, i + 1, "write");
        put_return(code, i + 2);
        struct iovec parts[] = {{code, 3}, {code + 3, 3}};
        CHECK(pwritev(fd, parts, 2, 0) == 6);
        expect(page, i + 2, "pwritev");
        put_return(code, i + 3);
        off_t from = 0, to = 0;
        CHECK(pwrite(source, code, 6, 0) == 6);
        CHECK(copy_file_range(source, &from, fd, &to, 6, 0) == 6);
        expect(page, i + 3, "copy_file_range");
        put_return(code, i + 4);
        CHECK(pwrite(source, code, 6, 0) == 6 && lseek(fd, 0, SEEK_SET) == 0);
        from = 0;
        CHECK(sendfile(fd, source, &from, 6) == 6);
        expect(page, i + 4, "sendfile");
        // A number that was something harmless, and is now this file.
        int other = dup(source);
        CHECK(pwrite(other, code, 6, 0) == 6 && dup2(fd, other) == other);
        put_return(code, i + 5);
        CHECK(pwrite(other, code, 6, 0) == 6);
        expect(page, i + 5, "after dup2");
        CHECK(close(other) == 0);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        other = open(path, O_RDWR);
        put_return(code, i + 6);
        CHECK(pwrite(other, code, 6, 0) == 6 && close(other) == 0);
        expect(page, i + 6, "another descriptor");
    }
    say("%s: wrong %d\n", what, wrong);
    wrong = 0;
    munmap(page, PAGE);
    close(fd), close(source), close(ends[0]), close(ends[1]);
}

int main(void)
{
    try_mapping(MAP_SHARED, "shared");
    try_mapping(MAP_PRIVATE, "private");
    return 0;
}
