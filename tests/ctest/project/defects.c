// SPDX-License-Identifier: MIT
//
// Makes the defects that its arguments name, each at a place of its own, through
// --tool=findingtest; kinds are the places in wire/findings.def.
#include <string.h>

typedef unsigned long Word;

__attribute__((noinline)) int muninn_test_finding(Word kind, Word v0, Word v1, Word v2,
                                                  const char *text, Word part)
{
    __asm__ volatile("" : : "r"(kind), "r"(v0), "r"(v1), "r"(v2), "r"(text), "r"(part));
    return -1;
}

enum {
#define KIND(NAME, shape, ...) KIND_##NAME,
#include "wire/findings.def"
};

static void known_to_be_harmless(void)
{
    muninn_test_finding(KIND_INVALID_READ, 2, 0, 0, NULL, 0);
}

static const struct {
    const char *name;
    Word kind, v0, v1;
    const char *text;
} defects[] = {
    {"invalid-read", KIND_INVALID_READ, 4, 0, NULL},
    {"invalid-write", KIND_INVALID_WRITE, 8, 0, NULL},
    {"uninit-branch", KIND_UNINIT_CONDITION, 0, 0, NULL},
    {"uninit-value", KIND_UNINIT_VALUE, 8, 0, NULL},
    {"syscall-param", KIND_SYSCALL_PARAM, 1, 0, "write(buf)"},
    {"invalid-free", KIND_INVALID_FREE, 0, 0, NULL},
    {"mismatched-free", KIND_MISMATCHED_FREE, 0, 0, NULL},
    {"overlap", KIND_OVERLAP, 16, 32, "memcpy"},
    {"leak-definite", KIND_LEAK_DEFINITE, 100, 1, NULL},
    {"leak-possible", KIND_LEAK_POSSIBLE, 64, 2, NULL},
};

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "suppressed") == 0)
            known_to_be_harmless();
        for (unsigned d = 0; d < sizeof(defects) / sizeof(defects[0]); d++) {
            // The number of the argument makes equal defects different ones.
            if (strcmp(argv[i], defects[d].name) == 0)
                muninn_test_finding(defects[d].kind, defects[d].v0 + (Word)(i == 2),
                                    defects[d].v1, 20, defects[d].text, 0);
        }
    }
    return 0;
}
