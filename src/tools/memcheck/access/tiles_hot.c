// SPDX-License-Identifier: MIT
//
// Tiles of AMX, which are loaded and stored row by row. No V bits are kept of them: what is
// stored is defined.
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

// As sttilecfg stores it.
typedef struct TileConfig {
    u8 palette, start_row;
    u8 reserved[14];
    u16 row_bytes[16];
    u8 rows[16];
} TileConfig;

_Static_assert(sizeof(TileConfig) == 64, "the processor's");

void access_tile(ToolThread *thread, u64 what, GuestAddr second_row)
{
    u64 stride = what & ACCESS_TILE_STRIDE
                     ? thread->gpr[what & ACCESS_TILE_INDEX] << (what >> ACCESS_TILE_SCALE_AT & 3)
                     : 0;
    u32 tile = what >> ACCESS_TILE_AT & 7;
    TileConfig config;
    __asm__ volatile("sttilecfg %0" : "=m"(config));
    GuestAddr row = second_row - stride;
    u32 size = config.row_bytes[tile];
    for (u32 i = 0; i < config.rows[tile]; i++, row += stride) {
        if (shadow_first_noaccess(thread, row, size) != row + size) {
            error_access(thread, row, size, what & ACCESS_WRITES);
            return;
        }
        if (what & ACCESS_WRITES)
            shadow_clear_v(row, size);
    }
}
