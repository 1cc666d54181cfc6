// SPDX-License-Identifier: MIT
//
// What the processor says of its string instructions.
#include "base/fill.h"

#include <cpuid.h>

bool fill_string_is_quick;

// AMD's fast short rep mov (7.0:edx 4) is as good for rep stos; others say so of it (7.1:eax 11).
void fill_init(void)
{
    enum { FAST_SHORT_MOVS = 1 << 4, FAST_SHORT_STOS = 1 << 11 };
    u32 eax, ebx, ecx, edx;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return;
    u32 leaves = eax, movs = edx;
    __cpuid(0, eax, ebx, ecx, edx);
    bool is_amd = ebx == signature_AMD_ebx;
    if (leaves >= 1)
        __cpuid_count(7, 1, eax, ebx, ecx, edx);
    fill_string_is_quick = (is_amd && movs & FAST_SHORT_MOVS) ||
                           (leaves >= 1 && eax & FAST_SHORT_STOS);
}
