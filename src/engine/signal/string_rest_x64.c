// SPDX-License-Identifier: MIT
//
// The rest of a repeated string instruction that stores (`rep movs`, `rep stos`) and that was
// stopped in the middle: at a guarded page, or for a signal. Where a tool's call stands before the
// instruction, the thread cannot be taken out between two rounds; and a trap for each of 400,000
// rounds takes a minute. So the handler runs what is left by an instruction of its own.
//
// What faults there leaves the registers as the fault finds them, and the client's instruction goes
// on from there and faults itself.
#include <signal.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/signal/signal_internal.h"

typedef struct StringRest {
    u8 length;  // of the instruction
    u8 element; // bytes
    bool moves; // else it stores rax
    bool is_narrow; // its addresses and its count have 32 bits
} StringRest;

// fs: and gs: are the engine's here; the other segments begin at 0.
static bool is_prefix(u8 byte)
{
    return byte == 0xf3 || byte == 0xf2 || byte == 0x66 || byte == 0x67 || byte == 0x26 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e;
}

// Prefixes, one of which repeats, and the opcode.
static bool read_string(const u8 *code, StringRest *ret_rest)
{
    u64 at = 0;
    bool repeats = false, is_short = false, is_wide = false, is_narrow = false;
    for (; is_prefix(code[at]); at++) {
        repeats |= code[at] == 0xf3 || code[at] == 0xf2;
        is_short |= code[at] == 0x66;
        is_narrow |= code[at] == 0x67;
    }
    if ((code[at] & 0xf0) == 0x40)
        is_wide = code[at++] & 8;
    bool moves = (code[at] & 0xfe) == 0xa4;
    if (!repeats || (!moves && (code[at] & 0xfe) != 0xaa))
        return false;
    u8 element = !(code[at] & 1) ? 1 : is_wide ? 8 : is_short ? 2 : 4;
    *ret_rest = (StringRest){(u8)(at + 1), element, moves, is_narrow};
    return true;
}

// The direction flag is the client's for these instructions alone.
#define REST(name, instruction)                                                                  \
    static void name(u64 *di, u64 *si, u64 *cx, u64 ax, u64 down)                                \
    {                                                                                            \
        __asm__ volatile("test %4, %4\n\tjz 1f\n\tstd\n1:\t" instruction "\n2:\tcld\n"           \
                         GUEST_FIXUP("1b", "2b")                                                 \
                         : "+D"(*di), "+S"(*si), "+c"(*cx)                                       \
                         : "a"(ax), "r"(down)                                                    \
                         : "memory", "cc");                                                      \
    }
REST(move_bytes, "rep movsb")
REST(move_words, "rep movsw")
REST(move_halves, "rep movsl")
REST(move_quads, "rep movsq")
REST(store_bytes, "rep stosb")
REST(store_words, "rep stosw")
REST(store_halves, "rep stosl")
REST(store_quads, "rep stosq")
REST(move_narrow_bytes, "addr32 rep movsb")
REST(move_narrow_words, "addr32 rep movsw")
REST(move_narrow_halves, "addr32 rep movsl")
REST(move_narrow_quads, "addr32 rep movsq")
REST(store_narrow_bytes, "addr32 rep stosb")
REST(store_narrow_words, "addr32 rep stosw")
REST(store_narrow_halves, "addr32 rep stosl")
REST(store_narrow_quads, "addr32 rep stosq")

typedef void RestFn(u64 *di, u64 *si, u64 *cx, u64 ax, u64 down);

static RestFn *rest_of(const StringRest *rest)
{
    static RestFn *const functions[2][2][4] = {
        {
            {store_bytes, store_words, store_halves, store_quads},
            {move_bytes, move_words, move_halves, move_quads},
        },
        {
            {store_narrow_bytes, store_narrow_words, store_narrow_halves, store_narrow_quads},
            {move_narrow_bytes, move_narrow_words, move_narrow_halves, move_narrow_quads},
        },
    };
    return functions[rest->is_narrow][rest->moves][__builtin_ctz(rest->element)];
}

bool string_rest_range(const StringState *state, GuestAddr *ret_start, u64 *ret_size)
{
    StringRest rest;
    const u64 too_many = 1ull << 40;
    if (!read_string((const u8 *)state->rip, &rest))
        return false;
    u64 count = rest.is_narrow ? (u32)state->cx : state->cx;
    u64 di = rest.is_narrow ? (u32)state->di : state->di;
    if (count == 0 || count > too_many)
        return false;
    *ret_size = count * rest.element;
    *ret_start = state->is_down ? di + rest.element - *ret_size : di;
    return true;
}

bool string_rest_run(StringState *state)
{
    StringRest rest;
    GuestAddr start;
    u64 size, faults = SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS), before;
    if (aspace_has_keys || !string_rest_range(state, &start, &size) ||
        !read_string((const u8 *)state->rip, &rest))
        return false;
    raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, (u64)&faults, (u64)&before, SIGSET_BYTES);
    rest_of(&rest)(&state->di, &state->si, &state->cx, state->ax, state->is_down);
    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (u64)&before, 0, SIGSET_BYTES);
    if (rest.is_narrow ? (u32)state->cx : state->cx)
        return false;
    state->rip += rest.length;
    return true;
}
