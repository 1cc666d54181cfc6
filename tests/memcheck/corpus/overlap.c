// SPDX-License-Identifier: MIT
//
// Copies whose source and destination overlap, through function pointers so that no compiler makes
// something else of them; and the strings that run out of their block.
// BUILD -fno-builtin
#include "corpus.h"

#include <wchar.h>

CASE(memcpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p + 10, p, 20); 
    // EXPECT-MUNINN memcheck overlap fn=memcpy why=memcpy-overlap
}

CASE(memcpy_overlap_backwards)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, p + 19, 20);
    // EXPECT-MUNINN memcheck overlap fn=memcpy why=memcpy-overlap
}

CASE(memcpy_touching)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, p + 20, 20);
    memcpy(p + 40, p + 20, 20);
}

CASE(memcpy_onto_itself)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, p, 20); // MAYBE memcheck overlap fn=memcpy
}

CASE(memmove_overlap)
{
    char *p = (char *)zeroed_block(100);
    memmove(p + 10, p, 20);
    memmove(p, p + 3, 90);
}

CASE(mempcpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    mempcpy(p + 10, p, 20); // EXPECT memcheck overlap fn=mempcpy
}

CASE(strcpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "hello, world", 13);
    strcpy(p, p + 5); // EXPECT memcheck overlap fn=strcpy
}

CASE(strcpy_apart)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "hello, world", 13);
    strcpy(p + 13, p);
    CHECK(strcmp(p + 13, "hello, world") == 0);
}

CASE(strncpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "hello, world", 13);
    strncpy(p + 5, p, 10); // EXPECT memcheck overlap fn=strncpy
}

CASE(strcat_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "ab\0-cdefgh", 11);
    strcat(p, p + 4); // EXPECT memcheck overlap fn=strcat
}

CASE(strncat_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "ab\0-cdefgh", 11);
    strncat(p, p + 4, 20); // EXPECT memcheck overlap fn=strncat
}

CASE(stpcpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    memcpy(p, "hello, world", 13);
    stpcpy(p, p + 5); // EXPECT memcheck overlap fn=stpcpy
}

CASE(strlen_behind)
{
    char *p = (char *)block(5);
    memcpy(p, "hello", 5);
    corpus_sink[0] = strlen(p); // EXPECT memcheck invalid-read size=1 block=after:0 of=5 top=strlen
}

CASE(strlen_whole_words)
{
    for (int n = 1; n < 80; n++) {
        char *p = (char *)block(n);
        memset(p, 'x', n - 1);
        p[n - 1] = 0;
        CHECK((int)strlen(p) == n - 1);
        free(p);
    }
}

CASE(strlen_undefined)
{
    char *p = (char *)block(8);
    memcpy(p, "hel", 3);
    p[7] = 0;
    corpus_sink[0] = strlen(p); // EXPECT memcheck uninit-branch origin=heap:-3 top=strlen
}

CASE(strcpy_too_long)
{
    char *p = (char *)block(8);
    strcpy(p, "12345678"); // EXPECT memcheck invalid-write size=1 block=after:0 of=8 top=strcpy
}

CASE(strcpy_fits)
{
    char *p = (char *)block(9);
    strcpy(p, "12345678");
    CHECK(strcmp(p, "12345678") == 0);
}

CASE(strcpy_from_freed)
{
    char *p = (char *)freed_block(10), q[20];
    strcpy(q, p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed
}

CASE(strncpy_pads)
{
    char *p = (char *)block(20);
    strncpy(p, "abc", 20);
    for (int i = 0; i < 20; i++)
        BRANCH(p[i]);
    strncpy(p, "abcdef", 3);
}

CASE(strcat_too_long)
{
    char *p = (char *)block(8);
    strcpy(p, "1234");
    strcat(p, "5678"); // EXPECT memcheck invalid-write size=1 block=after:0 of=8 top=strcat
}

CASE(strcmp_undefined)
{
    char *p = (char *)block(8);
    p[0] = 'a';
    corpus_sink[0] = strcmp(p, "abc"); // EXPECT memcheck uninit-branch origin=heap:-2 top=strcmp
}

CASE(strcmp_stops_in_time)
{
    char *p = (char *)block(8);
    p[0] = 'b';
    CHECK(strcmp(p, "abc") > 0);
    CHECK(strncmp(p, "bxx", 1) == 0);
}

CASE(strchr_behind)
{
    char *p = (char *)block(4);
    memset(p, 'a', 4);
    corpus_sink[0] = (u64)strchr(p, 'b'); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
}

CASE(strchr_finds_before_the_end)
{
    char *p = (char *)block(4);
    memcpy(p, "abcd", 4);
    CHECK(strchr(p, 'd') == p + 3);
    CHECK(memchr(p, 'd', 100) == p + 3);
}

CASE(strrchr_behind)
{
    char *p = (char *)block(4);
    memset(p, 'a', 4);
    corpus_sink[0] = (u64)strrchr(p, 'b'); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
}

CASE(memcmp_undefined)
{
    char *p = (char *)block(8), *q = (char *)zeroed_block(8);
    memset(p, 0, 7);
    corpus_sink[0] = memcmp(p, q, 8); // EXPECT memcheck uninit-branch origin=heap:-2
}

CASE(memcmp_differs_before_undefined)
{
    char *p = (char *)block(8), *q = (char *)zeroed_block(8);
    p[0] = 1;
    CHECK(memcmp(p, q, 8) > 0);
}

CASE(memchr_behind)
{
    char *p = (char *)zeroed_block(8);
    corpus_sink[0] = (u64)memchr(p, 1, 9); // EXPECT memcheck invalid-read size=1 block=after:0 of=8
}

CASE(memset_behind)
{
    char *p = (char *)block(8);
    memset(p, 0, 9); // EXPECT memcheck invalid-write block=after:0 of=8
}

CASE(memset_long_behind)
{
    char *p = (char *)block(1000);
    memset(p, 0, 1001); // EXPECT memcheck invalid-write block=after:0 of=1000
}

CASE(memcpy_reads_behind)
{
    char *p = (char *)zeroed_block(30), q[64];
    memcpy(q, p, 31); // EXPECT memcheck invalid-read block=after:0 of=30
}

CASE(memcpy_writes_behind)
{
    char *p = (char *)zeroed_block(30), q[64] = {0};
    memcpy(p, q, 32); // EXPECT memcheck invalid-write
}

CASE(memcpy_every_length)
{
    for (int n = 0; n < 150; n++) {
        char *p = (char *)zeroed_block(n + 1), *q = (char *)block(n + 1);
        memcpy(q, p, n);
        memcpy(q + 1, p, n);
        for (int i = 1; i <= n; i++)
            BRANCH(q[i]);
        free(p);
        free(q);
    }
}

CASE(memcpy_keeps_undefined_bytes)
{
    char *p = (char *)zeroed_block(64), *q = (char *)block(64), *r = (char *)zeroed_block(64);
    memcpy(r + 1, q, 1);
    memcpy(q, r, 64);
    BRANCH(q[0]);
    BRANCH(q[2]);
    BRANCH(q[1]); // EXPECT memcheck uninit-branch origin=heap:-5
}

CASE(memmem_and_strstr)
{
    char *p = (char *)block(12);
    memcpy(p, "hello world", 12);
    CHECK(strstr(p, "wor") == p + 6);
    CHECK(strpbrk(p, "ol") == p + 2);
    CHECK(strspn(p, "hel") == 4);
    CHECK(strcspn(p, "w") == 6);
    CHECK(strcasecmp(p, "HELLO WORLD") == 0);
    CHECK(memrchr(p, 'o', 11) == p + 7);
    CHECK(strnlen(p, 5) == 5);
    CHECK(rawmemchr(p, 'w') == p + 6);
    CHECK(strchrnul(p, 'z') == p + 11);
    free(p);
}

CASE(strnlen_without_terminator)
{
    char *p = (char *)block(5);
    memcpy(p, "hello", 5);
    CHECK(strnlen(p, 5) == 5);
    corpus_sink[0] = strnlen(p, 6);
    // EXPECT memcheck invalid-read size=1 block=after:0 of=5 top=strnlen
}

CASE(wide_strings)
{
    wchar_t *p = (wchar_t *)block(6 * sizeof(wchar_t));
    wcscpy(p, L"hello");
    CHECK(wcslen(p) == 5 && wcscmp(p, L"hello") == 0 && wcschr(p, L'o') == p + 4);
    free(p);
}

CASE(wcslen_behind)
{
    wchar_t *p = (wchar_t *)block(5 * sizeof(wchar_t));
    wmemset(p, L'x', 5);
    corpus_sink[0] = wcslen(p);
    // EXPECT memcheck invalid-read size=4 block=after:0 of=20 top=wcslen
}

CASE(strtok_and_numbers)
{
    char *p = (char *)block(16), *save;
    strcpy(p, "12 0x1f 7.5");
    CHECK(atoi(strtok_r(p, " ", &save)) == 12);
    CHECK(strtol(strtok_r(NULL, " ", &save), NULL, 16) == 31);
    CHECK(strtod(strtok_r(NULL, " ", &save), NULL) == 7.5);
    free(p);
}

CASE(printf_of_undefined)
{
    int *p = (int *)block(4);
    char text[30];
    snprintf(text, sizeof text, "%d", *(volatile int *)p);
    // EXPECT memcheck uninit-branch
    // MAYBE memcheck uninit-value
}

CASE(printf_of_unterminated)
{
    char *p = (char *)block(4), text[30];
    memcpy(p, "abcd", 4);
    snprintf(text, sizeof text, "%s", p); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
}

CASE(printf_of_bounded)
{
    char *p = (char *)block(4), text[30];
    memcpy(p, "abcd", 4);
    CHECK(snprintf(text, sizeof text, "%.4s", p) == 4);
}

CASE(vectorised_loop_like_strlen)
{
    for (int n = 1; n < 70; n++) {
        char *p = (char *)block(n);
        memset(p, 'x', n);
        p[n - 1] = 0;
        u64 length;
        __asm__ volatile("movq %1, %%rdx\n\tandq $-16, %%rdx\n\tpxor %%xmm0, %%xmm0\n\t"
                         "movq %1, %%rcx\n\tsubq %%rdx, %%rcx\n\t"
                         "movdqa (%%rdx), %%xmm1\n\tpcmpeqb %%xmm0, %%xmm1\n\tpmovmskb %%xmm1, %%eax\n\t"
                         "shrl %%cl, %%eax\n\tshll %%cl, %%eax\n\ttestl %%eax, %%eax\n\tjnz 2f\n\t"
                         "1: addq $16, %%rdx\n\tmovdqa (%%rdx), %%xmm1\n\tpcmpeqb %%xmm0, %%xmm1\n\t"
                         "pmovmskb %%xmm1, %%eax\n\ttestl %%eax, %%eax\n\tjz 1b\n\t"
                         "2: bsfl %%eax, %%eax\n\taddq %%rdx, %%rax\n\tsubq %1, %%rax\n\tmovq %%rax, %0"
                         : "=r"(length) : "r"(p) : "rax", "rcx", "rdx", "xmm0", "xmm1", "cc", "memory");
        CHECK((int)length == n - 1);
        free(p);
    }
}

// The case of i and I is the locale's affair.
CASE(strcasecmp_of_an_i)
{
    char *a = (char *)block(5), *b = (char *)block(5);
    strcpy(a, "INFI"), strcpy(b, "infi");
    HIDE(a);
    HIDE(b);
    CHECK(strcasecmp(a, b) == 0 && strncasecmp(a, b, 4) == 0);
    CHECK(strcasestr(a, "fi") == a + 2);
}

CASE(strcasecmp_beyond)
{
    char *a = (char *)block(4), *b = (char *)block(5);
    memcpy(a, "INFI", 4), strcpy(b, "infi");
    HIDE(a);
    HIDE(b);
    BRANCH(strcasecmp(a, b)); // EXPECT memcheck invalid-read size=1 block=after:0 of=4 top=strcasecmp
}

// What is copied counts, not what might have been.
CASE(memccpy_overlap)
{
    char *p = (char *)zeroed_block(100);
    p[15] = 7;
    memccpy(p + 10, p, 7, 50);
    // EXPECT-MUNINN memcheck overlap fn=memccpy why=memccpy-overlap
    // EXPECT-VALGRIND memcheck overlap fn=mempcpy why=memccpy-overlap
}

CASE(memccpy_stops_before_it_overlaps)
{
    char *p = (char *)zeroed_block(100);
    p[9] = 7;
    memccpy(p + 10, p, 7, 50);
    CHECK(p[19] == 7);
}
