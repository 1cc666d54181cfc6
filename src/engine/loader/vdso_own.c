// SPDX-License-Identifier: MIT
//
// What the engine's own libc finds where the vdso was before it became the client's: the same
// image, whose headers unwinders read, with functions that make the system calls they stand for.
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/pages.h"
#include "engine/loader/loader_internal.h"

typedef struct Stand {
    const char *name;
    u32 number;
} Stand;

static const Stand stands[] = {
    {"__vdso_clock_gettime", SYS_clock_gettime},
    {"__vdso_clock_getres", SYS_clock_getres},
    {"__vdso_gettimeofday", SYS_gettimeofday},
    {"__vdso_time", SYS_time},
    {"__vdso_getcpu", SYS_getcpu},
};

enum { NO_SUCH_CALL = 0xffffffff }; // the kernel answers -ENOSYS, and libc knows another way

static u32 number_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(stands); i++) {
        if (strcmp(stands[i].name, name) == 0)
            return stands[i].number;
    }
    return NO_SUCH_CALL;
}

// mov eax, number; syscall; ret
static void write_call(u8 *at, u32 number)
{
    static const u8 rest[] = {0x0f, 0x05, 0xc3};
    at[0] = 0xb8;
    memcpy(at + 1, &number, sizeof(number));
    memcpy(at + 1 + sizeof(number), rest, sizeof(rest));
}

static u64 dynamic_value(const u8 *image, i64 tag)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *parts = (const Elf64_Phdr *)(image + header->e_phoff);
    for (u32 i = 0; i < header->e_phnum; i++) {
        if (parts[i].p_type != PT_DYNAMIC)
            continue;
        for (const Elf64_Dyn *d = (const Elf64_Dyn *)(image + parts[i].p_offset); d->d_tag; d++) {
            if (d->d_tag == tag)
                return d->d_un.d_val;
        }
    }
    return 0;
}

// The symbols stand right before their names.
static void redirect_functions(u8 *image, u64 size)
{
    enum { CALL_BYTES = 8 };
    u64 symbols = dynamic_value(image, DT_SYMTAB), names = dynamic_value(image, DT_STRTAB);
    if (names >= size || symbols >= names)
        return;
    for (u64 at = symbols; at + sizeof(Elf64_Sym) <= names; at += sizeof(Elf64_Sym)) {
        const Elf64_Sym *s = (const Elf64_Sym *)(image + at);
        u64 place = s->st_value;
        bool is_function = ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_size >= CALL_BYTES;
        if (is_function && place + CALL_BYTES <= size && names + s->st_name < size)
            write_call(image + place, number_of((const char *)image + names + s->st_name));
    }
}

u8 *vdso_copy(u64 start, u64 size)
{
    u8 *copy = pages_map(size);
    return copy ? memcpy(copy, (const void *)start, size) : NULL;
}

void vdso_stand_in(u64 start, u64 size, u8 *copy)
{
    void *own = mmap((void *)start, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own != MAP_FAILED && copy) {
        redirect_functions(copy, size);
        memcpy(own, copy, size);
        mprotect(own, size, PROT_READ | PROT_EXEC);
    }
    if (copy)
        pages_unmap(copy, size);
}
