// SPDX-License-Identifier: MIT
//
// A small compressor of the kind of zlib: matches found through hash chains, literals and matches
// written as bits, and the way back. Each case plants one bug in it; the first plants none.
#include "corpus.h"

enum Bug {
    BUG_NONE, BUG_HEADS_NOT_SET, BUG_MATCH_BEYOND, BUG_LAST_BYTE, BUG_DISTANCE, BUG_STATE_LOST,
    BUG_STATE_FREED,
};
static volatile int bug;

enum { HASHES = 256, MATCH_MIN = 3, MATCH_MAX = 18, WINDOW = 4095, NOWHERE = 0xffff };

typedef struct Bits {
    u8 *bytes;
    u32 count, room; // in bits
} Bits;

typedef struct State {
    u16 heads[HASHES]; // the last place of each hash
    u16 *previous;     // and the one before that
    Bits out;
} State;

static NOINLINE void put_bits(Bits *b, u32 value, u32 count)
{
    for (u32 i = 0; i < count; i++, b->count++) {
        u8 *byte = &b->bytes[b->count / 8];
        if (b->count % 8 == 0)
            *byte = 0;
        *byte |= (value >> i & 1) << b->count % 8;
    }
}

static NOINLINE u32 get_bits(const Bits *b, u32 *at, u32 count)
{
    u32 value = 0;
    for (u32 i = 0; i < count; i++, ++*at)
        value |= (b->bytes[*at / 8] >> *at % 8 & 1) << i;
    return value;
}

static NOINLINE u32 hash_at(const u8 *p)
{
    return (p[0] * 33 ^ p[1] * 7 ^ p[2]) % HASHES;
}

static NOINLINE u32 match_length(const u8 *data, u32 a, u32 b, u32 size)
{
    u32 length = 0, most = bug == BUG_MATCH_BEYOND ? MATCH_MAX : size - b;
    if (most > MATCH_MAX)
        most = MATCH_MAX;
    while (length < most && data[a + length] == data[b + length])
        length++;
    return length;
}

static NOINLINE State *state_new(u32 size)
{
    State *s = (State *)malloc(sizeof(State));
    if (bug != BUG_HEADS_NOT_SET)
        for (int i = 0; i < HASHES; i++)
            s->heads[i] = NOWHERE;
    s->previous = (u16 *)malloc(2 * size);
    s->out.count = 0;
    s->out.room = size * 9 + 12;
    s->out.bytes = (u8 *)malloc(s->out.room / 8 + 1);
    return s;
}

static NOINLINE void state_free(State *s)
{
    free(s->previous);
    if (bug == BUG_STATE_FREED)
        free(s);
    free(s->out.bytes);
    if (bug != BUG_STATE_FREED && bug != BUG_STATE_LOST)
        free(s);
}

static NOINLINE void compress(State *s, const u8 *data, u32 size)
{
    for (u32 at = 0; at < size;) {
        u32 best = 0, from = 0;
        u32 h = at + MATCH_MIN <= size ? hash_at(data + at) : 0;
        u32 place = at + MATCH_MIN <= size ? s->heads[h] : NOWHERE;
        for (int tries = 0; place != NOWHERE && place < at && tries < 8; tries++) {
            u32 length = match_length(data, place, at, size);
            if (length > best)
                best = length, from = place;
            place = s->previous[place];
        }
        if (at + MATCH_MIN <= size) {
            s->previous[at] = s->heads[h];
            s->heads[h] = at;
        }
        if (best >= MATCH_MIN) {
            put_bits(&s->out, 1, 1);
            put_bits(&s->out, best - MATCH_MIN, 4);
            put_bits(&s->out, at - from, 12);
            for (u32 i = 1; i < best && at + i < size; i++)
                s->previous[at + i] = NOWHERE;
            at += best;
        } else {
            put_bits(&s->out, 0, 1);
            put_bits(&s->out, data[at++], 8);
        }
    }
}

static NOINLINE u8 *expand(const Bits *b, u32 size)
{
    u8 *out = (u8 *)malloc(size);
    u32 at = 0;
    for (u32 n = 0; n < size;) {
        if (!get_bits(b, &at, 1)) {
            out[n++] = get_bits(b, &at, 8);
            continue;
        }
        u32 length = get_bits(b, &at, 4) + MATCH_MIN, distance = get_bits(b, &at, 12);
        if (bug == BUG_DISTANCE)
            distance += n;
        u32 end = n + length;
        if (bug != BUG_LAST_BYTE && end > size)
            end = size;
        for (; n < end; n++)
            out[n] = out[(int)(n - distance)];
    }
    return out;
}

static NOINLINE void work(enum Bug planted)
{
    enum { SIZE = 600 };
    u8 *data = (u8 *)malloc(SIZE);
    bug = planted;
    for (int i = 0; i < SIZE; i++)
        data[i] = "the quick brown fox jumps over the lazy dog; the end"[i * (1 + i / 300) % 52];
    for (int i = 1; i < 16; i++)
        data[SIZE - i] = 'z';
    State *s = state_new(SIZE);
    compress(s, data, SIZE);
    // A decoder that trusts its input is given a size that is too small.
    u32 size = planted == BUG_LAST_BYTE ? SIZE - 3 : SIZE;
    u8 *back = expand(&s->out, size);
    if (planted == BUG_NONE)
        CHECK(memcmp(back, data, size) == 0);
    BRANCH(back[100]);
    free(back);
    state_free(s);
    free(data);
}

CASE(none) // OPTIONS --leak-check=full
{
    work(BUG_NONE);
}

CASE(heads_not_set)
{
    work(BUG_HEADS_NOT_SET);
    // EXPECT memcheck uninit-branch origin=heap line=any
    // MAYBE memcheck uninit-branch line=any
    // MAYBE memcheck uninit-value line=any
}

CASE(match_beyond_the_end)
{
    work(BUG_MATCH_BEYOND);
    // EXPECT memcheck invalid-read size=1 block=after:0 of=600 line=any
    // MAYBE memcheck invalid-read line=any
    // MAYBE memcheck invalid-write line=any
}

CASE(one_match_too_long)
{
    work(BUG_LAST_BYTE);
    // EXPECT memcheck invalid-write size=1 block=after:0 of=597 line=any
    // MAYBE memcheck invalid-write size=1 line=any
    // MAYBE memcheck invalid-read size=1 line=any
}

CASE(distance_before_the_beginning)
{
    work(BUG_DISTANCE);
    // EXPECT memcheck invalid-read line=any
    // MAYBE memcheck uninit-branch line=any
}

CASE(state_lost) // OPTIONS --leak-check=full
{
    work(BUG_STATE_LOST); // EXPECT memcheck leak-definite blocks=1 line=any
}

CASE(state_freed_too_early)
{
    work(BUG_STATE_FREED);
    // EXPECT memcheck invalid-read size=8 state=freed line=any
}
