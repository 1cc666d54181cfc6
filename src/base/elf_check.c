// SPDX-License-Identifier: MIT
//
// The checks behind elf_check(). Everything is read through a small window
// (PhdrReader), so that a table of 64 KiB needs neither that much stack nor a
// heap; every sum of two fields of the file is tested for overflow first.

#include "base/elf_check.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_PHDRS 32

typedef struct FaultRow {
    int error;
    const char *text;
} FaultRow;

static const FaultRow fault_rows[ELF_FAULT_COUNT] = {
#define FAULT(name, error, text) [ELF_FAULT_##name] = {error, text},
    ELF_FAULTS(FAULT)
#undef FAULT
};

int elf_fault_errno(ElfFault fault)
{
    return fault < ELF_FAULT_COUNT ? fault_rows[fault].error : ENOEXEC;
}

const char *elf_fault_text(ElfFault fault)
{
    return fault < ELF_FAULT_COUNT ? fault_rows[fault].text : "is unusable";
}

// Reads exactly size bytes. A short file is reported as such, not as an error
// of the device.
static ElfFault read_exactly(int fd, void *buffer, size_t size, u64 offset, ElfFault if_short)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, (u8 *)buffer + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ELF_FAULT_READ;
        if (n == 0)
            return if_short;
        done += (size_t)n;
    }
    return ELF_FAULT_NONE;
}

static bool range_is_inside(u64 offset, u64 size, u64 limit)
{
    return size <= limit && offset <= limit - size;
}

static ElfFault check_type(u16 type)
{
    switch (type) {
    case ET_EXEC:
    case ET_DYN:
        return ELF_FAULT_NONE;
    case ET_REL:
        return ELF_FAULT_TYPE_OBJECT;
    case ET_CORE:
        return ELF_FAULT_TYPE_CORE;
    default:
        return ELF_FAULT_TYPE;
    }
}

// A 32-bit header is shorter than ours, so the class is judged before the rest
// has been read.
static ElfFault check_ident(int fd)
{
    u8 ident[EI_NIDENT];
    ElfFault fault = read_exactly(fd, ident, SELFMAG, 0, ELF_FAULT_NOT_ELF);

    if (fault != ELF_FAULT_NONE)
        return fault;
    if (memcmp(ident, ELFMAG, SELFMAG) != 0)
        return ELF_FAULT_NOT_ELF;

    fault = read_exactly(fd, ident, sizeof(ident), 0, ELF_FAULT_TRUNCATED_HEADER);
    if (fault != ELF_FAULT_NONE)
        return fault;
    if (ident[EI_DATA] == ELFDATA2MSB)
        return ELF_FAULT_ENDIAN;
    return ELF_FAULT_NONE;
}

// EM_386 is at the same place in both classes; a 32-bit file for ARM is
// foreign first and 32-bit second.
static ElfFault check_machine(int fd, u8 class)
{
    u16 machine;
    ElfFault fault = read_exactly(fd, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine),
                                  ELF_FAULT_TRUNCATED_HEADER);

    if (fault != ELF_FAULT_NONE)
        return fault;
    if (machine == EM_386 || (class == ELFCLASS32 && machine == EM_X86_64))
        return ELF_FAULT_CLASS_32;
    if (machine != EM_X86_64)
        return ELF_FAULT_MACHINE;
    return class == ELFCLASS64 ? ELF_FAULT_NONE : ELF_FAULT_CLASS;
}

static ElfFault read_header(int fd, u64 file_size, Elf64_Ehdr *ret_header)
{
    Elf64_Ehdr header;
    u8 class;
    ElfFault fault = check_ident(fd);

    if (fault == ELF_FAULT_NONE)
        fault = read_exactly(fd, &class, 1, EI_CLASS, ELF_FAULT_TRUNCATED_HEADER);
    if (fault == ELF_FAULT_NONE)
        fault = check_machine(fd, class);
    if (fault == ELF_FAULT_NONE)
        fault = read_exactly(fd, &header, sizeof(header), 0, ELF_FAULT_TRUNCATED_HEADER);
    if (fault == ELF_FAULT_NONE)
        fault = check_type(header.e_type);
    if (fault != ELF_FAULT_NONE)
        return fault;

    u64 table_size = (u64)header.e_phnum * sizeof(Elf64_Phdr);
    if (header.e_phnum == 0)
        return ELF_FAULT_PHDR_NONE;
    if (header.e_phentsize != sizeof(Elf64_Phdr))
        return ELF_FAULT_PHDR_SIZE;
    if (table_size > ELF_PHDR_TABLE_MAX)
        return ELF_FAULT_PHDR_COUNT;
    if (!range_is_inside(header.e_phoff, table_size, file_size))
        return ELF_FAULT_PHDR_OUTSIDE;

    *ret_header = header;
    return ELF_FAULT_NONE;
}

// A window on the program header table.
typedef struct PhdrReader {
    int fd;
    u64 offset; // of the table in the file
    u32 count;  // of headers in the table
    u32 first;  // index of window[0]
    u32 filled; // headers in the window, 0 before the first read
    Elf64_Phdr window[WINDOW_PHDRS];
} PhdrReader;

static ElfFault phdr_get(PhdrReader *reader, u32 index, Elf64_Phdr *ret_phdr)
{
    if (index < reader->first || index >= reader->first + reader->filled) {
        u32 wanted = (u32)min_u64(WINDOW_PHDRS, reader->count - index);
        ElfFault fault = read_exactly(reader->fd, reader->window, wanted * sizeof(Elf64_Phdr),
                                      reader->offset + (u64)index * sizeof(Elf64_Phdr),
                                      ELF_FAULT_PHDR_OUTSIDE);
        reader->first = index;
        reader->filled = fault == ELF_FAULT_NONE ? wanted : 0;
        if (fault != ELF_FAULT_NONE)
            return fault;
    }
    *ret_phdr = reader->window[index - reader->first];
    return ELF_FAULT_NONE;
}

static ElfFault check_load(const Elf64_Phdr *load, u64 file_size)
{
    if (load->p_filesz > load->p_memsz)
        return ELF_FAULT_LOAD_SIZE;
    if (!range_is_inside(load->p_vaddr, load->p_memsz, ELF_ADDRESS_MAX))
        return ELF_FAULT_LOAD_WRAP;
    if ((load->p_align & (load->p_align - 1)) != 0 || load->p_align > ELF_ADDRESS_MAX)
        return ELF_FAULT_LOAD_ALIGN;
    if (load->p_filesz == 0)
        return ELF_FAULT_NONE;
    if (!range_is_inside(load->p_offset, load->p_filesz, file_size))
        return ELF_FAULT_LOAD_OUTSIDE;
    // mmap maps whole pages, so file and memory must agree modulo the page
    // size, whatever p_align claims.
    if ((load->p_offset - load->p_vaddr) % PAGE_SIZE != 0)
        return ELF_FAULT_LOAD_ALIGN;
    return ELF_FAULT_NONE;
}

// Compares `load`, number `index`, with the PT_LOADs before it. Linkers sort
// them by address, as the standard asks, and then the caller's running maximum
// settles it without this walk.
static ElfFault check_overlap(PhdrReader *reader, u32 index, const Elf64_Phdr *load)
{
    for (u32 i = 0; i < index; i++) {
        Elf64_Phdr other;
        ElfFault fault = phdr_get(reader, i, &other);

        if (fault != ELF_FAULT_NONE)
            return fault;
        if (other.p_type == PT_LOAD && other.p_memsz != 0 &&
            load->p_vaddr < other.p_vaddr + other.p_memsz &&
            other.p_vaddr < load->p_vaddr + load->p_memsz)
            return ELF_FAULT_LOAD_OVERLAP;
    }
    return ELF_FAULT_NONE;
}

static ElfFault read_interp(int fd, const Elf64_Phdr *phdr, u64 file_size, ElfInfo *info)
{
    if (info->has_interp)
        return ELF_FAULT_INTERP_TWICE;
    if (phdr->p_filesz < 2 || phdr->p_filesz > sizeof(info->interp))
        return ELF_FAULT_INTERP_SIZE;
    if (!range_is_inside(phdr->p_offset, phdr->p_filesz, file_size))
        return ELF_FAULT_INTERP_OUTSIDE;

    ElfFault fault = read_exactly(fd, info->interp, phdr->p_filesz, phdr->p_offset,
                                  ELF_FAULT_INTERP_OUTSIDE);
    if (fault != ELF_FAULT_NONE)
        return fault;
    if (info->interp[phdr->p_filesz - 1] != '\0' || info->interp[0] == '\0')
        return ELF_FAULT_INTERP_SIZE;
    info->has_interp = true;
    return ELF_FAULT_NONE;
}

static ElfFault check_segments(PhdrReader *reader, u64 file_size, ElfInfo *info)
{
    bool any_load = false;

    for (u32 i = 0; i < reader->count; i++) {
        Elf64_Phdr phdr;
        ElfFault fault = phdr_get(reader, i, &phdr);

        if (fault == ELF_FAULT_NONE && phdr.p_type == PT_INTERP)
            fault = read_interp(reader->fd, &phdr, file_size, info);
        if (fault == ELF_FAULT_NONE && phdr.p_type == PT_LOAD)
            fault = check_load(&phdr, file_size);
        if (fault != ELF_FAULT_NONE)
            return fault;
        if (phdr.p_type != PT_LOAD || phdr.p_memsz == 0)
            continue;

        if (any_load && phdr.p_vaddr < info->load_end)
            fault = check_overlap(reader, i, &phdr);
        if (fault != ELF_FAULT_NONE)
            return fault;
        info->load_start = any_load ? min_u64(info->load_start, phdr.p_vaddr) : phdr.p_vaddr;
        info->load_end = max_u64(info->load_end, phdr.p_vaddr + phdr.p_memsz);
        any_load = true;
    }
    return any_load ? ELF_FAULT_NONE : ELF_FAULT_LOAD_NONE;
}

ElfFault elf_check(int fd, ElfInfo *ret_info)
{
    struct stat status;
    Elf64_Ehdr header;

    if (fstat(fd, &status) != 0 || status.st_size < 0)
        return ELF_FAULT_READ;
    u64 file_size = (u64)status.st_size;
    ElfFault fault = read_header(fd, file_size, &header);
    if (fault != ELF_FAULT_NONE)
        return fault;

    ElfInfo info = {
        .type = header.e_type,
        .phdr_count = header.e_phnum,
        .phdr_offset = header.e_phoff,
        .entry = header.e_entry,
    };
    PhdrReader reader = {.fd = fd, .offset = header.e_phoff, .count = header.e_phnum};
    fault = check_segments(&reader, file_size, &info);
    if (fault == ELF_FAULT_NONE)
        *ret_info = info;
    return fault;
}
