// SPDX-License-Identifier: MIT
//
// coverage: which code of a program has been executed, for programs that are not built for it.
// Writes a drcov file, which disassemblers show, and with --lcov=FILE one that genhtml shows.
// Shows block callbacks, counters and modules. It reads line tables by elfutils (-ldw).
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MUNINN_TOOL("coverage", "writes what has been executed as drcov and lcov files")

// A part: a run of instructions that can be left at its end alone, as far as the code says.
typedef struct Part {
    uint64_t offset; // in its module: an address as its file tells them
    uint32_t size, module;
    MuninnCounter counter;
    bool is_marked; // instead of counted: it has run
} Part;
typedef struct Module {
    MuninnAddress start, end, base; // `base`: where address 0 of the file is
    char *path;
} Module;
enum { MODULES_MAX = 4096, PARTS_MAX = 1 << 22, SLOTS = 2 * PARTS_MAX };

static Module modules[MODULES_MAX];
static uint32_t module_count;
static Part *parts;
static uint32_t *slots; // hash table of parts: 1 + the index
static uint32_t part_count, counter_count;
static const char *drcov_path = "coverage.drcov.%p", *lcov_path = "";

// ------------------------------------------------------------------- while it runs

// The module of an address; made known when it is seen first. Files are mapped in pieces: the first
// one that holds the start of the file gives the base.
static uint32_t module_of(MuninnAddress address)
{
    MuninnModule found;
    for (uint32_t i = module_count; i-- > 0;) {
        if (address >= modules[i].start && address < modules[i].end)
            return i;
    }
    if (module_count == MODULES_MAX || !muninn_module_at(address, &found))
        return MODULES_MAX;
    Module *m = &modules[module_count];
    *m = (Module){.start = found.start, .end = found.end, .path = strdup(found.path)};
    m->base = found.start - found.offset;
    // Where the program headers say so, an address of the file is not its offset.
    int fd = open(found.path, O_RDONLY | O_CLOEXEC);
    Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    size_t headers = 0;
    if (elf && elf_getphdrnum(elf, &headers) == 0) {
        for (size_t i = 0; i < headers; i++) {
            GElf_Phdr h;
            if (gelf_getphdr(elf, (int)i, &h) && h.p_type == PT_LOAD && h.p_flags & PF_X)
                m->base = found.start - found.offset + h.p_offset - h.p_vaddr;
        }
    }
    elf_end(elf);
    close(fd);
    return module_count++;
}

static void on_part(MuninnThread *thread, void *data, uint64_t value)
{
    ((Part *)data)->is_marked = true;
}

static Part *part_at(uint32_t module, uint64_t offset, uint32_t size)
{
    size_t at = ((offset * 31 + module * 7 + size) * 0x9e3779b97f4a7c15ull >> 32) % SLOTS;
    while (slots[at]) {
        Part *p = &parts[slots[at] - 1];
        if (p->offset == offset && p->size == size && p->module == module)
            return p;
        at = (at + 1) % SLOTS;
    }
    if (part_count == PARTS_MAX)
        return NULL;
    Part *p = &parts[part_count++];
    slots[at] = part_count;
    *p = (Part){.offset = offset, .size = size, .module = module, .counter = MUNINN_COUNTERS_MAX};
    if (counter_count < MUNINN_COUNTERS_MAX)
        p->counter = counter_count++, muninn_counter();
    return p;
}

// Counters are numbered from 0; when there are no more, parts are marked by a call.
static void watch(MuninnInsn *first, uint64_t size)
{
    MuninnAddress address = muninn_insn_address(first);
    uint32_t module = module_of(address);
    Part *p = module == MODULES_MAX
                  ? NULL
                  : part_at(module, address - modules[module].base, (uint32_t)size);
    if (p && p->counter < MUNINN_COUNTERS_MAX)
        muninn_count(first, p->counter, 1);
    else if (p)
        muninn_call(first, on_part, p, 0);
}

static void on_block(MuninnBlock *block, void *data)
{
    size_t count = muninn_block_count(block), end;
    for (size_t first = 0; first < count; first = end) {
        MuninnInsn *begin = muninn_block_insn(block, first);
        uint64_t size = muninn_insn_size(begin);
        for (end = first + 1; end < count; end++) {
            MuninnInsn *insn = muninn_block_insn(block, end);
            // A jump that the engine has followed ends a part too.
            if (muninn_insn_class(muninn_block_insn(block, end - 1)) != MUNINN_CLASS_OTHER ||
                muninn_insn_address(insn) != muninn_insn_address(begin) + size)
                break;
            size += muninn_insn_size(insn);
        }
        watch(begin, size);
    }
}

// Another file may be mapped there later.
static void on_unmap(MuninnAddress start, MuninnAddress end, void *data)
{
    for (uint32_t i = 0; i < module_count; i++) {
        if (modules[i].start < end && modules[i].end > start)
            modules[i].start = modules[i].end = 0;
    }
}

// --------------------------------------------------------------------- at the end

static uint64_t totals[MUNINN_COUNTERS_MAX];

static uint64_t times(const Part *p)
{
    return p->counter < MUNINN_COUNTERS_MAX ? totals[p->counter] : p->is_marked;
}

static FILE *open_file(const char *path)
{
    int fd = muninn_open(path);
    if (fd < 0)
        muninn_log("cannot write %s: %s", path, strerror(-fd));
    return fd < 0 ? NULL : fdopen(fd, "w");
}

static void write_drcov(void)
{
    FILE *out = open_file(drcov_path);
    uint32_t executed = 0;
    for (uint32_t i = 0; i < part_count; i++)
        executed += times(&parts[i]) != 0;
    if (!out)
        return;
    fprintf(out, "DRCOV VERSION: 2\nDRCOV FLAVOR: muninn\nModule Table: version 2, count %u\n",
            module_count);
    fprintf(out, "Columns: id, base, end, entry, checksum, timestamp, path\n");
    for (uint32_t i = 0; i < module_count; i++)
        fprintf(out, "%2u, 0x%lx, 0x%lx, 0x0, 0x0, 0x0, %s\n", i, modules[i].base, modules[i].end,
                modules[i].path);
    fprintf(out, "BB Table: %u bbs\n", executed);
    for (uint32_t i = 0; i < part_count; i++) {
        struct {
            uint32_t start;
            uint16_t size, module;
        } entry = {(uint32_t)parts[i].offset, (uint16_t)parts[i].size, (uint16_t)parts[i].module};
        if (times(&parts[i]))
            fwrite(&entry, sizeof(entry), 1, out);
    }
    fclose(out);
}

typedef struct Line {
    const char *file;
    int number;
    uint64_t address, end, times;
} Line;
static Line *lines;
static size_t line_count, line_room;

static void add_line(Line line)
{
    if (line_count == line_room) {
        line_room = line_room ? 2 * line_room : 4096;
        lines = realloc(lines, line_room * sizeof(*lines));
    }
    lines[line_count++] = line;
}

static int by_address(const void *a, const void *b)
{
    const Line *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static int by_place(const void *a, const void *b)
{
    const Line *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    return files ? files : x->number - y->number;
}

// The rows of the module's line table: each is for the code up to a row with another address.
static void read_lines(Dwarf *dwarf)
{
    Dwarf_Off offset = 0, next;
    size_t header;
    for (; dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0; offset = next) {
        Dwarf_Die unit;
        Dwarf_Lines *rows;
        size_t count;
        if (!dwarf_offdie(dwarf, offset + header, &unit) ||
            dwarf_getsrclines(&unit, &rows, &count) != 0)
            continue;
        for (size_t i = 0; i + 1 < count; i++) {
            Dwarf_Line *row = dwarf_onesrcline(rows, i);
            Line line = {.file = dwarf_linesrc(row, NULL, NULL)};
            bool is_end = false;
            dwarf_lineendsequence(row, &is_end);
            dwarf_lineno(row, &line.number);
            dwarf_lineaddr(row, &line.address);
            // Of several rows for one address each is for the code behind all of them.
            for (size_t j = i + 1; j < count && line.end <= line.address; j++)
                dwarf_lineaddr(dwarf_onesrcline(rows, j), &line.end);
            if (!is_end && line.file && line.number && line.end > line.address)
                add_line(line);
        }
    }
}

// A line has run as often as the part of it that has run most.
static void count_lines(const Part *p)
{
    size_t low = 0, high = line_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (lines[middle].end <= p->offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < line_count && lines[low].address < p->offset + p->size; low++) {
        if (lines[low].times < times(p))
            lines[low].times = times(p);
    }
}

static void print_lines(FILE *out)
{
    qsort(lines, line_count, sizeof(*lines), by_place);
    for (size_t i = 0; i < line_count;) {
        const char *file = lines[i].file;
        fprintf(out, "TN:\nSF:%s\n", file);
        while (i < line_count && strcmp(lines[i].file, file) == 0) {
            int number = lines[i].number;
            uint64_t most = 0;
            for (; i < line_count && lines[i].number == number &&
                   strcmp(lines[i].file, file) == 0; i++)
                most = lines[i].times > most ? lines[i].times : most;
            fprintf(out, "DA:%d,%lu\n", number, most);
        }
        fprintf(out, "end_of_record\n");
    }
}

// Modules of one path are one file that was mapped again.
static void write_lcov_of(FILE *out, uint32_t module)
{
    for (uint32_t i = 0; i < module; i++) {
        if (strcmp(modules[i].path, modules[module].path) == 0)
            return;
    }
    int fd = open(modules[module].path, O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    line_count = 0;
    if (dwarf) {
        read_lines(dwarf);
        qsort(lines, line_count, sizeof(*lines), by_address);
        for (uint32_t i = 0; i < part_count; i++) {
            if (strcmp(modules[parts[i].module].path, modules[module].path) == 0)
                count_lines(&parts[i]);
        }
        print_lines(out);
        dwarf_end(dwarf);
    }
    close(fd);
}

static void on_end(void *data)
{
    muninn_counter_totals(totals, counter_count);
    write_drcov();
    FILE *out = *lcov_path ? open_file(lcov_path) : NULL;
    for (uint32_t i = 0; i < module_count && out; i++)
        write_lcov_of(out, i);
    if (out)
        fclose(out);
}

int muninn_tool_start(void)
{
    muninn_option_text("out", &drcov_path, "The drcov file; %p becomes the process id.");
    muninn_option_text("lcov", &lcov_path, "The lcov file; empty: none is written.");
    parts = calloc(PARTS_MAX, sizeof(*parts)); // touched where they are used only
    slots = calloc(SLOTS, sizeof(*slots));
    if (!parts || !slots)
        return 1;
    muninn_on_block(on_block, NULL);
    muninn_on_unmap(on_unmap, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
