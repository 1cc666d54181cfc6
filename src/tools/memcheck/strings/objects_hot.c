// SPDX-License-Identifier: MIT
//
// What objects say of themselves in the client's memory, where nothing is sure: every load may
// fail, every size is bounded.
//
// The name by which a function was called: glibc has one function for memcpy and memmove; which
// of them a caller means is in the relocation of the slot that its call goes through. And where an
// exported function is.
#include "tools/memcheck/strings/access.h"
#include "tools/memcheck/strings/call.h"

enum {
    PT_DYNAMIC_TYPE = 2, HEADERS_MAX = 64, DYNAMIC_MAX = 128, RELOCATIONS_MAX = 1 << 20,
    OBJECT_PAGES_MAX = 1 << 15, RELOCATION_BYTES = 24, SYMBOL_BYTES = 24, SYMBOLS_MAX = 1 << 16,
};
#define ELF_MAGIC 0x464c457full

// The dynamic section, as far as it matters here.
typedef struct Dynamic {
    GuestAddr base;
    u64 strings, symbols, plt, plt_bytes, others, others_bytes;
} Dynamic;

// The slot that the call before `return_address` goes through: call [rip + x], or a call of
// a stub that is jmp [rip + x]. 0: neither.
static GuestAddr slot_of(GuestAddr return_address)
{
    u64 word, at;
    if (load_u16(return_address - 6, &word) && word == 0x15ff &&
        load_u32(return_address - 4, &word))
        return return_address + (u64)(i64)(i32)word;
    if (!load_u8(return_address - 5, &word) || word != 0xe8 ||
        !load_u32(return_address - 4, &word))
        return 0;
    at = return_address + (u64)(i64)(i32)word;
    if (load_u32(at, &word) && word == 0xfa1e0ff3) // endbr64
        at += 4;
    if (load_u8(at, &word) && word == 0xf2) // bnd
        at++;
    if (!load_u16(at, &word) || word != 0x25ff || !load_u32(at + 2, &word))
        return 0;
    return at + 6 + (u64)(i64)(i32)word;
}

// The header of the object that has code there.
static GuestAddr object_of(GuestAddr code)
{
    GuestAddr page = code & ~(PAGE_SIZE - 1);
    u64 word;
    for (u32 i = 0; i < OBJECT_PAGES_MAX && page; i++, page -= PAGE_SIZE) {
        if (!load_u32(page, &word))
            return 0;
        if (word == ELF_MAGIC)
            return page;
    }
    return 0;
}

// Most linkers of programs make addresses of them; musl's does not.
static u64 absolute(const Dynamic *d, u64 value)
{
    return value < d->base ? value + d->base : value;
}

static bool read_dynamic(GuestAddr header, Dynamic *ret)
{
    u64 headers, count, type, at = 0, tag, value;
    *ret = (Dynamic){.base = header};
    if (!load_u64(header + 32, &headers) || !load_u16(header + 56, &count))
        return false;
    for (u64 i = 0; i < count && i < HEADERS_MAX; i++) {
        GuestAddr entry = header + headers + 56 * i;
        u64 offset, address;
        if (!load_u32(entry, &type) || !load_u64(entry + 8, &offset) ||
            !load_u64(entry + 16, &address))
            return false;
        if (type == 1 && offset == 0)
            ret->base = header - address;
        if (type == PT_DYNAMIC_TYPE)
            at = address;
    }
    for (u64 i = 0; at && i < DYNAMIC_MAX; i++) {
        GuestAddr entry = ret->base + at + 16 * i;
        if (!load_u64(entry, &tag) || !load_u64(entry + 8, &value) || tag == 0)
            break;
        switch (tag) {
        case 2: ret->plt_bytes = value; break;
        case 5: ret->strings = absolute(ret, value); break;
        case 6: ret->symbols = absolute(ret, value); break;
        case 7: ret->others = absolute(ret, value); break;
        case 8: ret->others_bytes = value; break;
        case 23: ret->plt = absolute(ret, value); break;
        default: break;
        }
    }
    return ret->strings && ret->symbols;
}

static bool is_named(const Dynamic *d, u64 symbol, const char *name)
{
    u64 offset, c;
    if (!load_u32(d->symbols + symbol * SYMBOL_BYTES, &offset))
        return false;
    for (u64 i = 0;; i++) {
        if (!load_u8(d->strings + offset + i, &c) || c != (u8)name[i])
            return false;
        if (c == 0)
            return true;
    }
}

// 1: the slot is for that name; 0: for another; -1: it is not in this table.
static int find(const Dynamic *d, GuestAddr table, u64 bytes, GuestAddr slot, const char *name)
{
    u64 offset, info;
    for (u64 i = 0; i < bytes / RELOCATION_BYTES && i < RELOCATIONS_MAX; i++) {
        GuestAddr at = table + i * RELOCATION_BYTES;
        if (!load_u64(at, &offset))
            return -1;
        if (d->base + offset == slot)
            return load_u64(at + 8, &info) && is_named(d, info >> 32, name);
    }
    return -1;
}

static bool look_up(GuestAddr return_address, const char *name)
{
    Dynamic d;
    GuestAddr slot = slot_of(return_address), header;
    if (!slot || !(header = object_of(return_address)) || !read_dynamic(header, &d))
        return false;
    int answer = d.plt ? find(&d, d.plt, d.plt_bytes, slot, name) : -1;
    if (answer < 0 && d.others)
        answer = find(&d, d.others, d.others_bytes, slot, name);
    return answer > 0;
}

bool string_called_as_memcpy(GuestAddr return_address)
{
    // By return address; the lowest bit is the answer. Threads race for a word.
    enum { KNOWN = 1024 };
    static u64 known[KNOWN];
    u64 *slot = &known[(return_address ^ return_address >> 10) % KNOWN];
    u64 entry = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (entry >> 1 != return_address) {
        entry = return_address << 1 | (look_up(return_address, "memcpy") ? 1 : 0);
        __atomic_store_n(slot, entry, __ATOMIC_RELAXED);
    }
    return entry & 1;
}

// Linkers put the names right behind the symbols.
GuestAddr string_exported_by(GuestAddr code, const char *name)
{
    Dynamic d;
    u64 value;
    GuestAddr header = object_of(code);
    if (!header || !read_dynamic(header, &d) || d.strings < d.symbols)
        return 0;
    u64 count = (d.strings - d.symbols) / SYMBOL_BYTES;
    for (u64 i = 1; i < count && i < SYMBOLS_MAX; i++) {
        if (is_named(&d, i, name) && load_u64(d.symbols + i * SYMBOL_BYTES + 8, &value) && value)
            return d.base + value;
    }
    return 0;
}
