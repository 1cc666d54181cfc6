// SPDX-License-Identifier: MIT
//
// Names for the stubs of the procedure linkage table. The stubs have no symbols; each
// jumps through a slot of the global offset table, and the relocation of that slot has the name.
// So every `jmp *slot(%rip)` in the sections .plt, .plt.sec and .plt.got is looked up by its slot,
// whatever the linker put around it.
#include "monitor/symbols/elf_names.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUBS_MAX 1000000
#define NAME_MAX_BYTES 4096

typedef struct Slot {
    u64 address;
    u32 symbol;
    u32 table; // index of the symbol table's section
} Slot;

typedef struct Slots {
    Slot *list;
    size_t count, capacity;
} Slots;

static int by_slot(const void *left, const void *right)
{
    const Slot *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void add_relocations(Slots *slots, Elf_Scn *scn, const GElf_Shdr *section)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t count = data && data->d_buf ? data->d_size / sizeof(Elf64_Rela) : 0;

    for (size_t i = 0; i < count && slots->count < STUBS_MAX; i++) {
        Elf64_Rela entry;
        memcpy(&entry, (const u8 *)data->d_buf + i * sizeof entry, sizeof entry);
        u64 type = ELF64_R_TYPE(entry.r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
            continue;
        if (slots->count == slots->capacity) {
            size_t capacity = slots->capacity ? 2 * slots->capacity : 256;
            Slot *grown = realloc(slots->list, capacity * sizeof *grown);
            if (!grown)
                return;
            slots->list = grown;
            slots->capacity = capacity;
        }
        slots->list[slots->count++] =
            (Slot){ entry.r_offset, (u32)ELF64_R_SYM(entry.r_info), section->sh_link };
    }
}

static const char *slot_name(Elf *elf, const Slot *slot)
{
    GElf_Shdr section;
    GElf_Sym symbol;
    Elf_Scn *scn = elf_getscn(elf, slot->table);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

    if (!data || !gelf_getshdr(scn, &section) || !gelf_getsym(data, (int)slot->symbol, &symbol))
        return NULL;
    return elf_strptr(elf, section.sh_link, symbol.st_name);
}

// A stub begins at a multiple of its size (16, or 8 in .plt.got); its jump is inside.
static void add_stubs(ElfNames *names, Elf *elf, const GElf_Shdr *section, const Elf_Data *data,
                      const Slots *slots, u64 stub_size)
{
    const u8 *code = data->d_buf;

    for (u64 i = 0; i + 6 <= data->d_size; i++) {
        if (code[i] != 0xff || code[i + 1] != 0x25) // jmp *disp32(%rip)
            continue;
        i32 displacement;
        memcpy(&displacement, code + i + 2, sizeof displacement);
        Slot wanted = { .address = section->sh_addr + i + 6 + (u64)(i64)displacement };
        const Slot *slot =
            bsearch(&wanted, slots->list, slots->count, sizeof wanted, by_slot);
        const char *name = slot ? slot_name(elf, slot) : NULL;
        char *text;
        if (!name || !*name || strlen(name) > NAME_MAX_BYTES ||
            asprintf(&text, "%s@plt", name) < 0)
            continue;
        u64 start = i / stub_size * stub_size;
        if (!elf_names_add_stub(names, section->sh_addr + start, stub_size, text))
            free(text);
    }
}

void elf_names_add_plt(ElfNames *names, const Image *image)
{
    static const struct {
        const char *section;
        u64 stub_size;
    } tables[] = { { ".plt", 16 }, { ".plt.sec", 16 }, { ".plt.got", 8 } };
    Slots slots = { 0 };

    if (!image->elf)
        return;
    for (Elf_Scn *scn = elf_nextscn(image->elf, NULL); scn; scn = elf_nextscn(image->elf, scn)) {
        GElf_Shdr section;
        if (gelf_getshdr(scn, &section) && section.sh_type == SHT_RELA &&
            (section.sh_flags & SHF_ALLOC))
            add_relocations(&slots, scn, &section);
    }
    if (slots.count)
        qsort(slots.list, slots.count, sizeof *slots.list, by_slot);
    for (size_t i = 0; slots.count && i < ARRAY_LEN(tables); i++) {
        GElf_Shdr section;
        Elf_Scn *scn = elf_section(image->elf, tables[i].section);
        Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
        if (data && data->d_buf && gelf_getshdr(scn, &section)) {
            // With endbr64 in front, the stubs of .plt.got are 16 bytes long.
            u64 stub_size = i == 2 && section.sh_entsize == 16 ? 16 : tables[i].stub_size;
            add_stubs(names, image->elf, &section, data, &slots, stub_size);
        }
    }
    free(slots.list);
}
