// SPDX-License-Identifier: MIT
//
// AMX: tiles are loaded and stored in rows, some way apart.
// NEEDS amx_tile
#include "corpus.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, ROWS = 4, ROW_BYTES = 32 };

typedef struct TileConfig {
    u8 palette, start_row, reserved[14];
    u16 row_bytes[16];
    u8 rows[16];
} TileConfig;

// From one place to another by tmm1, of 4 rows of 32 bytes each.
static NOINLINE void configure(void)
{
    static TileConfig config = {.palette = 1, .row_bytes = {[1] = ROW_BYTES}, .rows = {[1] = ROWS}};
    CHECK(syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0);
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

#define LOAD(p, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm1" : : "r"(p), "r"((u64)(stride)) : "memory")
#define STORE(p, stride) \
    __asm__ volatile("tilestored %%tmm1, (%0,%1,1)\n\ttilerelease" \
                     : : "r"(p), "r"((u64)(stride)) : "memory")

CASE(what_was_stored) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(ROWS * ROW_BYTES), *q = block(3 * 64 + ROW_BYTES);
    configure();
    LOAD(p, ROW_BYTES);
    STORE(q, 64);
    BRANCH(q[0]);
    BRANCH(q[3 * 64 + ROW_BYTES - 1]);
    BRANCH(q[ROW_BYTES]); // EXPECT memcheck uninit-branch origin=heap
}

CASE(load_beyond) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(100), *q = block(ROWS * ROW_BYTES);
    configure();
    LOAD(p, ROW_BYTES); // EXPECT memcheck invalid-read size=32 block=inside:96 of=100
    STORE(q, ROW_BYTES);
}

CASE(store_beyond) // NOT-VALGRIND avx512
{
    u8 *p = zeroed_block(ROWS * ROW_BYTES), *q = block(128 + ROW_BYTES);
    configure();
    LOAD(p, ROW_BYTES);
    STORE(q + 128, -64); // EXPECT memcheck invalid-write size=32 block=before:64 of=160
}
