// SPDX-License-Identifier: MIT
//
// What is addressed through fs is at a base that each thread has in its context, and to add it
// takes a register that is saved and loaded again. As long as there is one thread, and it has set
// its base for good, that is a constant of the code:
//
//     mov rax, fs:[rbx + 8]   becomes   mov rax, [rbx + base + 8]
//
// Blocks with the constant depend on a page that no client can map (tool_depends_on() does the same
// for others), and go together when it changes, or when there is another thread: none runs while
// the base of any thread is another one. After that, or after a few changes, it is no constant
// any more.
#include "engine/aspace/aspace.h"
#include "engine/ctx/ctx.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

enum { CHANGES_MAX = 8 };

static const GuestAddr page = TABLES_START;
static u64 constant; // 0: none; engine lock
static bool varies;  // for ever; engine lock
static u32 changes;

static void set(u64 base)
{
    if (constant)
        cache_invalidate(page, page + 1);
    constant = base;
}

static void forget(void)
{
    varies = true;
    set(0);
}

void translate_set_fs(ThreadCtx *ctx, u64 base)
{
    lock_acquire(&engine_lock);
    if (ctx->thread.vfork_depth || changes == CHANGES_MAX) { // a parent goes on with the old one
        forget();
    } else if (!varies && base != constant) {
        changes++;
        set(base);
    }
    ctx->client_fs = base;
    aspace_expects_words = false;
    lock_release(&engine_lock);
}

void translate_fs_varies(void)
{
    lock_acquire(&engine_lock);
    forget();
    lock_release(&engine_lock);
}

void fs_base_look(const Builder *b)
{
    for (unsigned i = 0; i < b->insn_count; i++) {
        if (b->insns[i].mnemonic == ZYDIS_MNEMONIC_WRFSBASE)
            forget();
    }
}

bool fs_base_add(Builder *b, i64 *disp)
{
    enum { MARGIN = 4096 }; // for a tool that looks beside it
    i64 sum = *disp + (i64)constant;
    if (!constant || sum < INT32_MIN + MARGIN || sum > INT32_MAX - MARGIN)
        return false;
    if (!b->has_fs_base)
        cache_note_source(b->block, page, page + 1);
    b->has_fs_base = true;
    *disp = sum;
    return true;
}

bool flatten_address(Builder *b, InsnAddress *a)
{
    if (!a->segment)
        return true;
    if (a->segment != 0x64 || a->is_narrow || a->is_rip || !fs_base_add(b, &a->disp))
        return false;
    a->segment = 0;
    return true;
}
