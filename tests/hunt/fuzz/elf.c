// SPDX-License-Identifier: MIT
//
// The check of ELF files that launcher and loader rely on: what it calls sound must be so.
#include "base/elf_check.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    ElfInfo info;

    fuzz_file(data, size);
    ElfFault fault = elf_check(fuzz_file_fd(), &info);
    FUZZ_CHECK(fault < ELF_FAULT_COUNT && elf_fault_text(fault));
    if (fault != ELF_FAULT_NONE)
        return 0;
    FUZZ_CHECK(info.phdr_count >= 1 && info.phdr_offset + info.phdr_count * 56ull <= size);
    FUZZ_CHECK(info.load_start <= info.load_end && info.load_end <= ELF_ADDRESS_MAX);
    return 0;
}
