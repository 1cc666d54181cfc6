// SPDX-License-Identifier: MIT
//
// A program with one error of each kind, for comparing with the incumbent which of
// them a suppression file hides.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

int sink;
void *volatile leaked;
void *volatile kept;

NOINLINE static void touch(void)
{
    sink++;
    __asm__ volatile("");
}

static inline __attribute__((always_inline)) void inlined_test(int *value)
{
    if (*value)
        touch();
}

NOINLINE void uninit_branch(void)
{
    int *value = malloc(sizeof(int));

    inlined_test(value);
    free(value);
}

// The same error in many places, so that one run can ask many questions.
#define SITE(number)                                                                               \
    NOINLINE void site_##number(int *value)                                                        \
    {                                                                                              \
        inlined_test(value);                                                                       \
    }
#define SITES(EACH)                                                                                \
    EACH(00) EACH(01) EACH(02) EACH(03) EACH(04) EACH(05) EACH(06) EACH(07) EACH(08) EACH(09)      \
    EACH(10) EACH(11) EACH(12) EACH(13) EACH(14) EACH(15) EACH(16) EACH(17) EACH(18) EACH(19)      \
    EACH(20) EACH(21) EACH(22) EACH(23) EACH(24) EACH(25) EACH(26) EACH(27) EACH(28) EACH(29)      \
    EACH(30) EACH(31) EACH(32) EACH(33) EACH(34) EACH(35) EACH(36) EACH(37) EACH(38) EACH(39)

SITES(SITE)

NOINLINE void all_sites(void)
{
    int *value = malloc(sizeof(int));

#define CALL(number) site_##number(value);
    SITES(CALL)
#undef CALL
    free(value);
}

NOINLINE void uninit_index(void)
{
    static int table[256];
    unsigned char *index = malloc(1);

    sink += table[*index];
    free(index);
}

NOINLINE void invalid_write(char *block)
{
    block[8] = 1;
}

NOINLINE int invalid_read(int *block)
{
    return block[2];
}

NOINLINE void recurse(char *block, int depth)
{
    if (depth > 0)
        recurse(block, depth - 1);
    else
        invalid_write(block);
    __asm__ volatile("");
}

NOINLINE void bad_parameter(void)
{
    char *block = malloc(8);

    int file = open("/dev/null", O_WRONLY);

    if (write(file, block, 8) < 0)
        touch();
    free(block);
}

NOINLINE void free_twice(void)
{
    void *volatile block = malloc(8);

    free(block);
    free(block);
}

NOINLINE void leak_at(size_t size)
{
    leaked = malloc(size);
}

NOINLINE void keep_at(size_t size)
{
    kept = malloc(size);
}

// Code without a name or a file: push rbp; mov rbp,rsp; mov rax,[rdi+8]; pop rbp; ret
NOINLINE void generated_code(void *block)
{
    static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b,
                                          0x47, 0x08, 0x5d, 0xc3 };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);

    memcpy(page, code, sizeof(code));
    ((void (*)(void *))page)(block);
}

int main(void)
{
    char *block = calloc(1, 8);

    uninit_branch();
    all_sites();
    uninit_index();
    recurse(block, 3);
    sink += invalid_read((int *)block);
    bad_parameter();
    free_twice();
    generated_code(block);
    leak_at(16);
    leaked = NULL;
    keep_at(24);
    free(block);
    return 0;
}
