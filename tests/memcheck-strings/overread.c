// SPDX-License-Identifier: MIT
// BUILD: dynamic clang musl
// OUTPUT
//
// Vectorised loops of any library: they read whole words and vectors, aligned, and mask off what
// was not asked for. Nothing is found, unless the string itself is undefined.
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef size_t Length(const char *s);

static size_t length_word(const char *s)
{
    const char *at = s;
    for (; (uintptr_t)at & 7; at++) {
        if (!*at)
            return (size_t)(at - s);
    }
    for (;; at += 8) {
        uint64_t word = *(const uint64_t *)at;
        uint64_t zero = (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
        if (zero)
            return (size_t)(at - s) + (size_t)(__builtin_ctzll(zero) / 8);
    }
}

static size_t length_sse2(const char *s)
{
    const char *at = (const char *)((uintptr_t)s & ~15ull);
    unsigned skip = (unsigned)(s - at);
    for (;; at += 16, skip = 0) {
        __m128i v = _mm_load_si128((const __m128i *)at);
        unsigned mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()));
        mask = mask >> skip << skip;
        if (mask)
            return (size_t)(at + __builtin_ctz(mask) - s);
    }
}

__attribute__((target("avx2"))) static size_t length_avx2(const char *s)
{
    const char *at = (const char *)((uintptr_t)s & ~31ull);
    unsigned skip = (unsigned)(s - at);
    for (;; at += 32, skip = 0) {
        __m256i v = _mm256_load_si256((const __m256i *)at);
        unsigned mask = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()));
        mask = mask >> skip << skip;
        if (mask)
            return (size_t)(at + __builtin_ctz(mask) - s);
    }
}

int main(void)
{
    Length *lengths[] = {length_word, length_sse2,
                         __builtin_cpu_supports("avx2") ? length_avx2 : length_sse2};
    size_t sum = 0;
    for (int i = 0; i < 3; i++) {
        for (size_t n = 0; n < 70; n++) {
            char *exact = malloc(n + 1), *roomy = malloc(n + 40);
            memset(exact, 'a', n);
            exact[n] = 0;
            strcpy(roomy, exact);
            sum = sum * 31 + lengths[i](exact) + lengths[i](roomy);
            free(exact);
            free(roomy);
        }
    }
    printf("%zu\n", sum);
    return 0;
}
