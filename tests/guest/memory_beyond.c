// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// Mappings at 16 TiB and above, where not every tool has room: they are refused, or as good as
// others. And io_uring's rings, which the kernel wants to place itself.
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

static int is_good(char *memory)
{
    if (memory == MAP_FAILED)
        return 1;
    memory[12] = 1;
    memset(memory + 4000, 5, 200);
    return memory[12] == 1 && memory[4100] == 5 && memory[13] == 0;
}

static int map_beyond(void)
{
    int good = 0;
    for (uint64_t at = 0x100000000000; at < 0x7f0000000000; at += 0x080000000000) {
        char *fixed = mmap((void *)at, SIZE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        char *hinted = mmap((void *)(at + 2 * SIZE), SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        good += is_good(fixed) && hinted != MAP_FAILED && is_good(hinted);
        char *moved = mremap(hinted, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * SIZE);
        good += moved == MAP_FAILED ? is_good(hinted) : moved[4100] == 5;
    }
    return good;
}

// 1: as it should be, or there is no io_uring here.
static int use_ring(void)
{
    struct io_uring_params p = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 8, &p);
    if (fd < 0)
        return 1;
    size_t size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t size_of_sq = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    char *ring = mmap(NULL, size > size_of_sq ? size : size_of_sq, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, p.sq_entries * sizeof(*entries),
                                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                                        IORING_OFF_SQES);
    if (ring == MAP_FAILED || (void *)entries == MAP_FAILED)
        return 0;
    memset(entries, 0, sizeof(*entries));
    entries[0].opcode = IORING_OP_NOP;
    entries[0].user_data = 42;
    ((uint32_t *)(ring + p.sq_off.array))[0] = 0;
    __atomic_store_n((uint32_t *)(ring + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    long entered = syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    const struct io_uring_cqe *done = (void *)(ring + p.cq_off.cqes);
    return entered == 1 && done->user_data == 42;
}

int main(void)
{
    printf("%d good\n", map_beyond());
    printf("ring %d\n", use_ring());
    return 0;
}
