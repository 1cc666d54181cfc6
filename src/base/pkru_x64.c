// SPDX-License-Identifier: MIT
#include "base/pkru_x64.h"

#include <cpuid.h>

bool pkru_is_there;

void pkru_init(void)
{
    u32 eax, ebx, ecx, edx;
    // OSPKE: the system uses it, not only the processor.
    pkru_is_there = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSPKE);
}
