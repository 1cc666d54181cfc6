// SPDX-License-Identifier: MIT
//
// Judges whether an open file is an ELF executable that this engine can load,
// and says what is wrong with it otherwise. The launcher asks before it starts
// the engine, the engine before it follows an execve; the loader may then map
// segments without looking for lies in the headers again.
//
// Only pread() is used and nothing is allocated: every size in the file is
// hostile until checked. The verdicts are those of Linux' execve where it
// refuses, and stricter where it would go on to kill the new process: segments
// that overlap, wrap around or lie outside the file.
#ifndef MUNINN_BASE_ELF_CHECK_H
#define MUNINN_BASE_ELF_CHECK_H

#include "base/types.h"

#include <limits.h>

// The kernel refuses a program header table of more than 64 KiB.
#define ELF_PHDR_TABLE_MAX (64 * KiB)

// The end of user space with 4-level page tables, less the guard page.
#define ELF_ADDRESS_MAX 0x7ffffffff000ull

// FAULT(name, errno that execve gives, text that completes "FILE: ...")
#define ELF_FAULTS(FAULT)                                                                          \
    FAULT(NONE, 0, "is a sound ELF executable")                                                    \
    FAULT(READ, EIO, "cannot be read")                                                             \
    FAULT(NOT_ELF, ENOEXEC, "is not an ELF executable")                                            \
    FAULT(TRUNCATED_HEADER, ENOEXEC, "is truncated: the ELF header is incomplete")                 \
    FAULT(CLASS_32, ENOEXEC, "is a 32-bit program; muninn runs 64-bit x86-64 programs only")       \
    FAULT(CLASS, ENOEXEC, "is neither a 32-bit nor a 64-bit ELF file")                             \
    FAULT(ENDIAN, ENOEXEC, "is a big-endian ELF file; muninn runs x86-64 programs only")           \
    FAULT(MACHINE, ENOEXEC, "is built for another processor; muninn runs x86-64 programs only")    \
    FAULT(TYPE_OBJECT, ENOEXEC, "is an object file that has yet to be linked")                     \
    FAULT(TYPE_CORE, ENOEXEC, "is a core dump, not a program")                                     \
    FAULT(TYPE, ENOEXEC, "is an ELF file, but not an executable")                                  \
    FAULT(PHDR_SIZE, ENOEXEC, "has a malformed ELF header: wrong size of program headers")         \
    FAULT(PHDR_NONE, ENOEXEC, "has a malformed ELF header: no program headers")                    \
    FAULT(PHDR_COUNT, ENOEXEC, "has a malformed ELF header: too many program headers")             \
    FAULT(PHDR_OUTSIDE, ENOEXEC, "is truncated: its program headers lie beyond the end of file")   \
    FAULT(LOAD_NONE, ENOEXEC, "has nothing to load: no PT_LOAD segment")                           \
    FAULT(LOAD_OUTSIDE, ENOEXEC, "is truncated: a segment lies beyond the end of file")            \
    FAULT(LOAD_SIZE, ENOEXEC, "is malformed: a segment is larger in the file than in memory")      \
    FAULT(LOAD_WRAP, ENOEXEC, "is malformed: a segment lies outside the address space")            \
    FAULT(LOAD_ALIGN, ENOEXEC, "is malformed: a segment is misaligned")                            \
    FAULT(LOAD_OVERLAP, ENOEXEC, "is malformed: two segments overlap")                             \
    FAULT(INTERP_TWICE, ENOEXEC, "is malformed: it names two program interpreters")                \
    FAULT(INTERP_SIZE, ENOEXEC, "is malformed: the name of its program interpreter is unusable")   \
    FAULT(INTERP_OUTSIDE, ENOEXEC, "is truncated: the name of its interpreter is missing")

typedef enum ElfFault {
#define FAULT(name, error, text) ELF_FAULT_##name,
    ELF_FAULTS(FAULT)
#undef FAULT
        ELF_FAULT_COUNT
} ElfFault;

typedef struct ElfInfo {
    u16 type;              // ET_EXEC or ET_DYN
    u16 phdr_count;        // at least 1
    u64 phdr_offset;       // the table is whole and inside the file
    u64 entry;             // not checked: a bad one is the client's own SIGSEGV
    u64 load_start;        // lowest p_vaddr of the PT_LOAD segments
    u64 load_end;          // highest p_vaddr + p_memsz
    bool has_interp;       // then interp is a NUL-terminated, non-empty path
    char interp[PATH_MAX]; // untouched if !has_interp
} ElfInfo;

// Checks the file that fd reads. Fills ret_info only when the verdict is
// ELF_FAULT_NONE. The interpreter it names is not looked at.
ElfFault elf_check(int fd, ElfInfo *ret_info);

// The errno, positive, with which execve answers this fault; 0 for NONE.
int elf_fault_errno(ElfFault fault);

// Completes a sentence that starts with the name of the file.
const char *elf_fault_text(ElfFault fault);

#endif
