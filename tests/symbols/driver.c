// SPDX-License-Identifier: MIT
//
// Maps one ELF file as a client would and prints what the symbols of the monitor say
// about addresses: the tests compare that with addr2line and its like.
//
//   driver [OPTION...] FILE < QUESTIONS
//
//   --extra=PATH --allow-mismatched --no-inline --no-demangle --pid=N --bias=HEX
//
// A question is a line: `HEX` (a vaddr), `r HEX` (the same as a return address), `d HEX` (a
// variable), `s HEX DISTANCE` (a variable of the frame at vaddr), `n NAME` (demangle).
// An answer is, for each frame, innermost first:
//   function <TAB> directory/file:line <TAB> function offset <TAB> object offset [<TAB> inlined NAME]
// and an empty line after the last.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/symbols/symbols.h"

static u64 bias = 0x10000000;

static void map_file(Symbols *symbols, const char *path)
{
    static u8 bytes[65536];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    Elf64_Ehdr head;

    if (file)
        fclose(file);
    if (size < sizeof head)
        exit(3);
    memcpy(&head, bytes, sizeof head);
    if (head.e_type == ET_EXEC)
        bias = 0;
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        u64 at = head.e_phoff + (u64)i * sizeof part;
        if (at + sizeof part > size)
            break;
        memcpy(&part, bytes + at, sizeof part);
        if (part.p_type != PT_LOAD || part.p_filesz == 0)
            continue;
        u64 start = PAGE_DOWN(part.p_vaddr);
        symbols_map(symbols, &(SymbolsMapping){
                                 .start = bias + start,
                                 .size = PAGE_UP(part.p_vaddr + part.p_filesz) - start,
                                 .file_offset = PAGE_DOWN(part.p_offset),
                                 .executable = part.p_flags & PF_X,
                                 .path = path,
                             });
    }
}

static const char *or_unknown(const char *text)
{
    return text ? text : "?";
}

static void print_source(const char *directory, const char *file, u32 line)
{
    if (!file)
        printf("?");
    else
        printf("%s%s%s:%u", directory ? directory : "",
               directory && strcmp(directory, "/") != 0 ? "/" : "", file, line);
}

static void print_frames(Symbols *symbols, u64 vaddr, bool is_return)
{
    Frame frames[64];
    CodePlace place = symbols_place(symbols, bias + vaddr);
    size_t count = symbols_frames(symbols, place, bias + vaddr, is_return, frames, 64);

    for (size_t i = 0; i < count; i++) {
        printf("%s\t", or_unknown(frames[i].function));
        print_source(frames[i].directory, frames[i].file, frames[i].line);
        printf("\t%llx\t%llx", (unsigned long long)frames[i].function_offset,
               (unsigned long long)frames[i].object_offset);
        if (frames[i].inlined)
            printf("\tinlined %s", or_unknown(frames[i].plain));
        printf("\n");
    }
    printf("\n");
}

static void print_data(bool found, const DataName *data)
{
    if (found) {
        printf("%s\t", data->name);
        print_source(data->directory, data->file, data->line);
        printf("\t%llu\t%llu\n", (unsigned long long)data->offset,
               (unsigned long long)data->size);
    }
    printf("\n");
}

static void answer(Symbols *symbols, char *line)
{
    unsigned long long vaddr = 0;
    long long distance;
    DataName data;

    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "n ", 2) == 0) {
        printf("%s\n\n", symbols_demangle(symbols, line + 2));
    } else if (sscanf(line, "r %llx", &vaddr) == 1) {
        print_frames(symbols, vaddr, true);
    } else if (sscanf(line, "d %llx", &vaddr) == 1) {
        print_data(symbols_data(symbols, bias + vaddr, &data), &data);
    } else if (sscanf(line, "s %llx %lld", &vaddr, &distance) == 2) {
        CodePlace place = symbols_place(symbols, bias + vaddr);
        print_data(symbols_stack_data(symbols, place, false, distance, &data), &data);
    } else if (sscanf(line, "%llx", &vaddr) == 1) {
        print_frames(symbols, vaddr, false);
    }
}

static void print_warning(void *opaque, const char *line)
{
    (void)opaque;
    fprintf(stderr, "warning: %s\n", line);
}

int main(int argc, char **argv)
{
    SymbolsConfig config = { .keep_debuginfo = true, .read_inline_info = true, .demangle = true,
                             .warn = print_warning };
    const char *path = NULL;
    static char line[1 << 16];

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--extra=", 8) == 0)
            config.extra_debuginfo_path = argv[i] + 8;
        else if (strcmp(argv[i], "--allow-mismatched") == 0)
            config.allow_mismatched = true;
        else if (strcmp(argv[i], "--debuginfod") == 0)
            config.debuginfod = true;
        else if (strcmp(argv[i], "--no-inline") == 0)
            config.read_inline_info = false;
        else if (strcmp(argv[i], "--no-demangle") == 0)
            config.demangle = false;
        else if (strncmp(argv[i], "--pid=", 6) == 0)
            config.pid = atoi(argv[i] + 6);
        else if (strncmp(argv[i], "--bias=", 7) == 0)
            bias = strtoull(argv[i] + 7, NULL, 16);
        else
            path = argv[i];
    }
    Symbols *symbols = path ? symbols_new(&config) : NULL;
    if (!symbols)
        return 2;
    map_file(symbols, path);
    while (fgets(line, sizeof line, stdin))
        answer(symbols, line);
    symbols_free(symbols);
    return 0;
}
