// SPDX-License-Identifier: MIT
//
// Maps one ELF file as the kernel would. elf_check() has judged its headers; should
// they change between that and now, the kernel refuses what makes no sense, and
// every write here goes through guest_write().
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_check.h"
#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/loader/loader_internal.h"

// The area below is left to programs that are linked to a fixed address.
#define PIE_BASE  0x25500000ull
#define ALIGN_MAX GiB

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

typedef struct Loading {
    const char *path;
    int fd;
    ElfInfo info;
    Elf64_Phdr *phdr;
    u64 align;
    Image *image;
} Loading;

static Elf64_Phdr phdr_buffer[PHDR_MAX]; // loading happens once, on one thread

static bool is_power_of_two(u64 x)
{
    return x && !(x & (x - 1));
}

// What elf_check() does not tell: alignment and the kind of stack.
static void survey(Loading *l)
{
    l->align = PAGE_SIZE;
    for (u32 i = 0; i < l->image->phdr_count; i++) {
        const Elf64_Phdr *p = &l->phdr[i];
        if (p->p_type == PT_GNU_STACK)
            l->image->exec_stack = p->p_flags & PF_X;
        if (p->p_type == PT_LOAD && is_power_of_two(p->p_align) && p->p_align <= ALIGN_MAX)
            l->align = max_u64(l->align, p->p_align);
    }
}

// Room for a position-independent image: low if there is any, so that the cache can reach it.
static i64 find_room(const Loading *l, ImageRole role, u64 len)
{
    const u64 flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    i64 at;

    if (role == IMAGE_PROGRAM) {
        u64 base = max_u64(PIE_BASE, aspace_lowest);
        u64 hint = (base + l->align - 1) & ~(l->align - 1);
        at = aspace_map_named(hint, len, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0, NULL);
        if (at >= 0)
            return at;
    }
    at = aspace_map_named(0, len, PROT_NONE, flags | MAP_32BIT, -1, 0, NULL);
    return at >= 0 ? at : aspace_map_named(0, len, PROT_NONE, flags, -1, 0, NULL);
}

// Sets the bias. The room is given back at once: this is the only thread, and
// the holes between segments are no mappings.
static bool choose_bias(const Loading *l, ImageRole role)
{
    Image *image = l->image;

    if (l->info.type == ET_EXEC) {
        image->bias = 0;
        return true;
    }
    u64 slack = l->align > PAGE_SIZE ? l->align : 0;
    u64 len = image->end - image->start + slack;
    i64 at = find_room(l, role, len);
    if (at < 0)
        return load_error(l->path, "does not fit into the address space");
    sys_munmap((u64)at, len);
    u64 first = image->start & ~(l->align - 1);
    image->bias = (((u64)at + slack) & ~(l->align - 1)) - first;
    if (image->start + image->bias < (u64)at)
        image->bias += l->align;
    return true;
}

static u64 segment_prot(const Elf64_Phdr *p)
{
    return (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
           (p->p_flags & PF_X ? PROT_EXEC : 0);
}

static bool zero_bytes(u64 from, u64 to)
{
    static const u8 zeros[PAGE_SIZE];

    return guest_write(from, zeros, to - from);
}

static bool map_segment(const Loading *l, const Elf64_Phdr *p)
{
    u64 start = l->image->bias + p->p_vaddr;
    u64 file_end = start + p->p_filesz;
    u64 memory_end = start + p->p_memsz;
    u64 bss = PAGE_DOWN(start);

    if (p->p_filesz) {
        i64 at = aspace_map_named(PAGE_DOWN(start), file_end - PAGE_DOWN(start), segment_prot(p),
                                  MAP_PRIVATE | MAP_FIXED, l->fd, PAGE_DOWN(p->p_offset), NULL);
        if (at < 0)
            return load_error(l->path, at == -ENOMEM ? "has a segment where the engine must be"
                                                     : "has a segment that cannot be mapped");
        bss = PAGE_UP(file_end);
        // Behind the file's bytes its last page shows whatever follows in the file.
        bool partial = p->p_memsz > p->p_filesz && file_end < bss && (p->p_flags & PF_W);
        if (partial && !zero_bytes(file_end, bss))
            return load_error(l->path, "has a segment that cannot be written");
    }
    if (PAGE_UP(memory_end) > bss) {
        i64 at = aspace_map_named(bss, PAGE_UP(memory_end) - bss, segment_prot(p),
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, NULL);
        if (at < 0)
            return load_error(l->path, "has a segment that cannot be mapped");
    }
    return true;
}

// Where in memory the program headers are: in the segment that maps their file offset.
static u64 find_phdr(const Loading *l)
{
    u64 offset = l->info.phdr_offset;

    for (u32 i = 0; i < l->image->phdr_count; i++) {
        const Elf64_Phdr *p = &l->phdr[i];
        if (p->p_type == PT_LOAD && offset >= p->p_offset && offset - p->p_offset < p->p_filesz)
            return l->image->bias + p->p_vaddr + (offset - p->p_offset);
    }
    return 0;
}

static bool map_all(const Loading *l)
{
    Image *image = l->image;

    image->code_start = ~0ull;
    for (u32 i = 0; i < image->phdr_count; i++) {
        const Elf64_Phdr *p = &l->phdr[i];
        if (p->p_type != PT_LOAD || p->p_memsz == 0)
            continue;
        if (!map_segment(l, p))
            return false;
        if (p->p_flags & PF_X) {
            image->code_start = min_u64(image->code_start, image->bias + p->p_vaddr);
            image->code_end = max_u64(image->code_end, image->bias + p->p_vaddr + p->p_memsz);
        }
    }
    image->start += image->bias;
    image->end += image->bias;
    if (image->code_end == 0) { // no segment is executable: the whole then, for /proc
        image->code_start = image->start;
        image->code_end = image->end;
    }
    image->entry = l->info.entry + image->bias;
    image->phdr = find_phdr(l);
    return true;
}

static void resolve_path(int fd, const char *given, Image *image)
{
    char link[64];

    text_format(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, image->path, sizeof image->path - 1);
    if (len > 0)
        image->path[len] = 0;
    else
        text_format(image->path, sizeof image->path, "%s", given);
}

static bool load_open_file(Loading *l, ImageRole role)
{
    Image *image = l->image;

    ElfFault fault = elf_check(l->fd, &l->info);
    if (fault != ELF_FAULT_NONE)
        return load_error(l->path, elf_fault_text(fault));
    size_t size = l->info.phdr_count * sizeof(Elf64_Phdr);
    if (l->info.phdr_count > PHDR_MAX ||
        pread(l->fd, l->phdr, size, (off_t)l->info.phdr_offset) != (ssize_t)size)
        return load_error(l->path, "cannot be read");
    image->phdr_count = l->info.phdr_count;
    image->is_fixed = l->info.type == ET_EXEC;
    image->start = PAGE_DOWN(l->info.load_start);
    image->end = PAGE_UP(l->info.load_end);
    if (l->info.has_interp)
        text_format(image->interp, sizeof image->interp, "%s", l->info.interp);
    resolve_path(l->fd, l->path, image);
    survey(l);
    return choose_bias(l, role) && map_all(l);
}

bool image_load(const char *path, ImageRole role, Image *ret_image)
{
    memset(ret_image, 0, sizeof *ret_image);
    Loading l = {.path = path, .phdr = phdr_buffer, .image = ret_image};
    l.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (l.fd < 0)
        return load_error(path, errno == ENOENT ? "no such file" : "cannot be opened");
    aspace_opened_as(l.fd, path);
    bool loaded = load_open_file(&l, role);
    close(l.fd);
    return loaded;
}
