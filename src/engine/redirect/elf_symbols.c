// SPDX-License-Identifier: MIT
//
// Where an ELF file keeps its two symbol tables.
#include "engine/redirect/elf_symbols.h"

#include <string.h>
#include <sys/stat.h>

#include "base/pages.h"
#include "base/raw_syscall.h"

// Larger tables are not read: no linker makes them.
#define TABLE_BYTES_MAX (256 * MiB)
#define SYMBOLS_MAX (TABLE_BYTES_MAX / sizeof(Elf64_Sym))
#define DYNAMIC_MAX 1024u

static bool in_file(const ElfFile *f, u64 offset, u64 len)
{
    return offset <= f->size && len <= f->size - offset;
}

static bool read_at(const ElfFile *f, u64 offset, void *dst, u64 len)
{
    if (!in_file(f, offset, len))
        return false;
    while (len) {
        i64 got = raw_syscall4(SYS_pread64, (u64)f->fd, (u64)dst, len, offset);
        if (got <= 0)
            return false;
        dst = (u8 *)dst + got;
        offset += (u64)got;
        len -= (u64)got;
    }
    return true;
}

// A part of the file in memory that elf_close() gives back, a zero byte behind it.
static void *read_part(ElfFile *f, u64 offset, u64 len)
{
    if (len == 0 || len > TABLE_BYTES_MAX || !in_file(f, offset, len) ||
        f->buffer_count == ELF_BUFFERS_MAX)
        return NULL;
    void *pages = pages_map(len + 1);
    if (!pages)
        return NULL;
    f->buffers[f->buffer_count].pages = pages;
    f->buffers[f->buffer_count++].size_bytes = len + 1;
    return read_at(f, offset, pages, len) ? pages : NULL;
}

// ---------------------------------------------------------------- headers

static bool is_ours(const Elf64_Ehdr *h)
{
    return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_X86_64 &&
           (h->e_type == ET_EXEC || h->e_type == ET_DYN) && h->e_phentsize == sizeof(Elf64_Phdr);
}

// The file offset of `len` bytes that the program sees at `address`.
static bool offset_of(const ElfFile *f, u64 address, u64 len, u64 *ret_offset)
{
    for (u32 i = 0; i < f->phdr_count; i++) {
        const Elf64_Phdr *p = &f->phdrs[i];
        if (p->p_type != PT_LOAD || address < p->p_vaddr || address - p->p_vaddr >= p->p_filesz)
            continue;
        u64 inside = address - p->p_vaddr;
        if (len > p->p_filesz - inside || !in_file(f, p->p_offset, inside + len))
            return false;
        *ret_offset = p->p_offset + inside;
        return true;
    }
    return false;
}

static void read_soname(ElfFile *f, u64 name)
{
    u64 room = f->dynamic.strings_size;
    if (name >= room)
        return;
    u64 len = min_u64(room - name, ELF_SONAME_MAX - 1);
    if (!read_at(f, f->dynamic.strings + name, f->soname, len))
        len = 0;
    f->soname[len] = 0;
}

static void read_dynamic(ElfFile *f, const Elf64_Phdr *segment)
{
    u64 count = min_u64(segment->p_filesz / sizeof(Elf64_Dyn), DYNAMIC_MAX);
    const Elf64_Dyn *d = read_part(f, segment->p_offset, count * sizeof *d);
    u64 symbols = 0, strings = 0, strings_size = 0, hash = 0, gnu_hash = 0, soname = ~0ull;
    u64 versions = 0, definitions = 0;

    for (u64 i = 0; d && i < count && d[i].d_tag != DT_NULL; i++) {
        switch (d[i].d_tag) {
        case DT_SYMTAB: symbols = d[i].d_un.d_ptr; break;
        case DT_STRTAB: strings = d[i].d_un.d_ptr; break;
        case DT_STRSZ: strings_size = d[i].d_un.d_val; break;
        case DT_HASH: hash = d[i].d_un.d_ptr; break;
        case DT_GNU_HASH: gnu_hash = d[i].d_un.d_ptr; break;
        case DT_VERSYM: versions = d[i].d_un.d_ptr; break;
        case DT_VERDEF: definitions = d[i].d_un.d_ptr; break;
        case DT_SONAME: soname = d[i].d_un.d_val; break;
        case DT_FLAGS_1: f->is_static_program |= (d[i].d_un.d_val & DF_1_PIE) != 0; break;
        default: break;
        }
    }
    if (!offset_of(f, symbols, sizeof(Elf64_Sym), &f->dynamic.symbols) ||
        !offset_of(f, strings, strings_size, &f->dynamic.strings))
        return;
    f->dynamic.strings_size = strings_size;
    if (!hash || !offset_of(f, hash, 8, &f->dynamic.hash))
        f->dynamic.hash = 0;
    if (!gnu_hash || !offset_of(f, gnu_hash, 16, &f->dynamic.gnu_hash))
        f->dynamic.gnu_hash = 0;
    if (!versions || !offset_of(f, versions, sizeof(Elf64_Versym), &f->dynamic.versions))
        f->dynamic.versions = 0;
    if (!definitions || !offset_of(f, definitions, sizeof(Elf64_Verdef), &f->dynamic.definitions))
        f->dynamic.definitions = 0;
    read_soname(f, soname);
}

static const Elf64_Phdr *find_segment(const ElfFile *f, u32 type)
{
    for (u32 i = 0; i < f->phdr_count; i++) {
        if (f->phdrs[i].p_type == type)
            return &f->phdrs[i];
    }
    return NULL;
}

bool elf_open(int fd, ElfFile *ret_file)
{
    ElfFile *f = ret_file;
    struct stat st;

    memset(f, 0, sizeof *f);
    f->fd = fd;
    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&st) < 0)
        return false;
    f->size = (u64)st.st_size;
    if (!read_at(f, 0, &f->header, sizeof f->header) || !is_ours(&f->header))
        return false;
    f->phdrs = read_part(f, f->header.e_phoff, f->header.e_phnum * sizeof(Elf64_Phdr));
    if (!f->phdrs)
        return false;
    f->phdr_count = f->header.e_phnum;
    f->is_static_program = f->header.e_type == ET_EXEC;
    const Elf64_Phdr *dynamic = find_segment(f, PT_DYNAMIC);
    if (dynamic)
        read_dynamic(f, dynamic);
    if (find_segment(f, PT_INTERP))
        f->is_static_program = false;
    return true;
}

void elf_close(ElfFile *f)
{
    for (u32 i = 0; i < f->buffer_count; i++)
        pages_unmap(f->buffers[i].pages, f->buffers[i].size_bytes);
    f->buffer_count = 0;
}

bool elf_load_bias(const ElfFile *f, GuestAddr start, u64 offset, u64 *ret_bias)
{
    for (u32 i = 0; i < f->phdr_count; i++) {
        const Elf64_Phdr *p = &f->phdrs[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < PAGE_DOWN(p->p_offset) ||
            offset - PAGE_DOWN(p->p_offset) >= p->p_filesz + p->p_offset % PAGE_SIZE)
            continue;
        *ret_bias = start - offset + p->p_offset - p->p_vaddr;
        return true;
    }
    return false;
}

// ---------------------------------------------------------------- tables

// DT_GNU_HASH tells the number of symbols only through its last chain: that of
// the highest bucket, which ends at an odd word.
static u64 count_by_gnu_hash(ElfFile *f)
{
    struct {
        u32 buckets, first_symbol, bloom_words, bloom_shift;
    } h;
    u64 at = f->dynamic.gnu_hash;
    if (!read_at(f, at, &h, sizeof h))
        return 0;
    u64 buckets_at = at + sizeof h + 8ull * h.bloom_words;
    const u32 *buckets = read_part(f, buckets_at, 4ull * h.buckets);
    u64 last = 0;
    for (u32 i = 0; buckets && i < h.buckets; i++)
        last = max_u64(last, buckets[i]);
    if (last < h.first_symbol)
        return h.first_symbol;
    u64 chains_at = buckets_at + 4ull * h.buckets;
    u32 chunk[256];
    for (; last < SYMBOLS_MAX; last += ARRAY_LEN(chunk)) {
        u64 chain_at = chains_at + 4 * (last - h.first_symbol);
        u64 len = chain_at < f->size ? min_u64(f->size - chain_at, sizeof chunk) / 4 : 0;
        if (!len || !read_at(f, chain_at, chunk, 4 * len))
            return 0;
        for (u64 i = 0; i < len; i++) {
            if (chunk[i] & 1)
                return last + i + 1;
        }
    }
    return 0;
}

static u64 count_by_hash(const ElfFile *f)
{
    u32 h[2]; // buckets, chains; there is a chain for each symbol
    return read_at(f, f->dynamic.hash, h, sizeof h) ? h[1] : 0;
}

static bool read_table(ElfFile *f, u64 symbols, u64 count, u64 strings, u64 strings_size,
                       ElfSymbols *ret_symbols)
{
    if (count > SYMBOLS_MAX)
        return false;
    const Elf64_Sym *s = read_part(f, symbols, count * sizeof *s);
    const char *names = s ? read_part(f, strings, strings_size) : NULL;
    if (!names)
        return false;
    *ret_symbols = (ElfSymbols){s, count, names, strings_size, false};
    return true;
}

bool elf_dynamic_symbols(ElfFile *f, ElfSymbols *ret_symbols)
{
    if (!f->dynamic.symbols || !f->dynamic.strings_size)
        return false;
    u64 count = f->dynamic.gnu_hash ? count_by_gnu_hash(f)
                : f->dynamic.hash   ? count_by_hash(f)
                                    : 0;
    if (!count || !read_table(f, f->dynamic.symbols, count, f->dynamic.strings,
                              f->dynamic.strings_size, ret_symbols))
        return false;
    ret_symbols->is_dynamic = true;
    f->dynamic.symbol_count = count;
    return true;
}

bool elf_full_symbols(ElfFile *f, ElfSymbols *ret_symbols)
{
    const Elf64_Ehdr *h = &f->header;
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0)
        return false;
    const Elf64_Shdr *s = read_part(f, h->e_shoff, h->e_shnum * sizeof *s);
    for (u32 i = 0; s && i < h->e_shnum; i++) {
        if (s[i].sh_type != SHT_SYMTAB || s[i].sh_link >= h->e_shnum)
            continue;
        const Elf64_Shdr *strings = &s[s[i].sh_link];
        return read_table(f, s[i].sh_offset, s[i].sh_size / sizeof(Elf64_Sym), strings->sh_offset,
                          strings->sh_size, ret_symbols);
    }
    return false;
}

// ---------------------------------------------------------------- versions

enum { VERSION_HIDDEN = 0x8000, VERSION_INDEX = 0x7fff, DEFINITIONS_MAX = 64 * 1024 };

bool elf_read_versions(ElfFile *f)
{
    if (!f->dynamic.versions || !f->dynamic.definitions)
        return false;
    if (!f->versions) {
        u64 at = f->dynamic.definitions, size = min_u64(f->size - at, DEFINITIONS_MAX);
        f->versions = read_part(f, f->dynamic.versions, f->dynamic.symbol_count * sizeof(u16));
        f->definitions = read_part(f, at, size);
        f->dynamic.definitions_size = size;
    }
    return f->versions && f->definitions;
}

const char *elf_version(const ElfFile *f, const ElfSymbols *dynamic, u64 index,
                        bool *ret_is_default)
{
    u16 version = f->versions[index];
    u64 at = 0, room = f->dynamic.definitions_size;
    Elf64_Verdef definition;
    Elf64_Verdaux name;

    for (u32 i = 0; i <= VERSION_INDEX && at <= room && room - at >= sizeof(definition); i++) {
        memcpy(&definition, f->definitions + at, sizeof(definition));
        if ((definition.vd_ndx & VERSION_INDEX) == (version & VERSION_INDEX)) {
            u64 name_at = at + definition.vd_aux;
            bool is_base = definition.vd_flags & VER_FLG_BASE; // that is the object's own name
            if (is_base || name_at > room || room - name_at < sizeof(name))
                return NULL;
            memcpy(&name, f->definitions + name_at, sizeof(name));
            if (name.vda_name >= dynamic->strings_size)
                return NULL;
            *ret_is_default = !(version & VERSION_HIDDEN);
            return dynamic->strings + name.vda_name;
        }
        if (!definition.vd_next)
            return NULL;
        at += definition.vd_next;
    }
    return NULL;
}
