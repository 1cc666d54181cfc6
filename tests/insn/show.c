// SPDX-License-Identifier: MIT
//
// show FILE ID…: prints cases as a human reads them: group, code as bytes and text, the state that
// was asked for. show FILE lists the groups: name, first id, last id of each run of cases.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forms.h"

static const char *const base_names[] = { "", "data+", "near+", "code+" };

static const CaseFile *open_cases(const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        perror(path);
        exit(2);
    }
    const CaseFile *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED || file->magic != CASE_MAGIC) {
        fprintf(stderr, "show: %s: not a case file\n", path);
        exit(2);
    }
    close(fd);
    return file;
}

static const char *group_name(const CaseFile *file, u32 group)
{
    return (const char *)(file + 1) + group * CASE_NAME_MAX;
}

static const Case *first_case(const CaseFile *file)
{
    return (const Case *)group_name(file, file->n_groups);
}

static const Case *next_case(const Case *c)
{
    return (const Case *)((const u8 *)c + c->size_bytes);
}

static void list_groups(const CaseFile *file)
{
    const Case *c = first_case(file);
    u32 first = 0;
    for (u32 i = 0; i < file->n_cases; i++, c = next_case(c)) {
        bool last = i + 1 == file->n_cases || next_case(c)->group != c->group;
        if (last) {
            printf("%s\t%u\t%u\n", group_name(file, c->group), first, c->id);
            first = c->id + 1;
        }
    }
}

static const CaseFix *fix_at(const Case *c, u32 from, u32 to, bool exits)
{
    for (u32 i = 0; i < c->n_fixes; i++) {
        const CaseFix *f = case_fixes(c) + i;
        if (f->at >= from && f->at < to && (f->kind >= FIX_EXIT) == exits)
            return f;
    }
    return NULL;
}

static void show_bytes(const u8 *bytes, u32 len_bytes)
{
    for (u32 i = 0; i < len_bytes; i++)
        printf("%02x ", bytes[i]);
    printf("%*s", len_bytes < 12 ? (int)(12 - len_bytes) * 3 : 0, "");
}

static void show_code(const Case *c)
{
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    for (u32 at = 0; at < c->code_bytes;) {
        const CaseFix *leave = fix_at(c, at, at + 1, true);
        Insn insn;
        char text[128] = "(bad)";
        u32 len_bytes = 1;
        if (leave) {
            printf("  %3x: leave the case%s\n", at,
                   leave->kind == FIX_EXIT_TAKEN ? ", branch taken" : "");
            at += EXIT_BYTES;
            continue;
        }
        u32 left = c->code_bytes - at;
        if (insn_decode(case_code(c) + at, left < INSN_MAX ? left : INSN_MAX, &insn)) {
            len_bytes = insn.len_bytes;
            ZydisFormatterFormatInstruction(&formatter, &insn.info, insn.ops,
                                            insn.info.operand_count_visible, text, sizeof(text),
                                            at, NULL);
        }
        printf("  %3x: ", at);
        show_bytes(case_code(c) + at, len_bytes);
        const CaseFix *fix = fix_at(c, at, at + len_bytes, false);
        if (fix)
            printf("%s  <operand placed at %s%#llx>\n", text, base_names[fix->base],
                   (long long)fix->value);
        else
            printf("%s\n", text);
        at += len_bytes;
    }
}

static void show_sets(const Case *c)
{
    static const char *const gprs[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };
    for (u32 i = 0; i < c->n_sets; i++) {
        const CaseSet *s = case_sets(c) + i;
        switch (s->kind) {
        case SET_GPR:
            printf("  %s = %s%#llx", gprs[s->index & 15], base_names[s->base], (long long)s->value);
            printf(s->divisor > 1 ? ", divided by %d\n" : "\n", s->divisor);
            break;
        case SET_DATA:
        case SET_NEAR:
            printf("  [%s+%#x] = %s%#llx\n", s->kind == SET_DATA ? "data" : "near", s->index * 8,
                   base_names[s->base], (long long)s->value);
            break;
        case SET_VEC_SMALL:
            printf("  vector %u = small lanes of %u bytes\n", s->index, s->lane_bytes);
            break;
        case SET_RESUME:
            printf("  a fault at %#llx continues at %#llx\n", (long long)s->value >> 16,
                   (long long)s->value & 0xffff);
            break;
        default:
            printf("  flags = %#llx\n", (long long)s->value);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: show FILE [ID…]\n");
        return 2;
    }
    const CaseFile *file = open_cases(argv[1]);
    if (argc == 2)
        list_groups(file);
    for (int arg = 2; arg < argc; arg++) {
        u32 id = (u32)strtoul(argv[arg], NULL, 0);
        const Case *c = first_case(file);
        for (u32 i = 0; i < file->n_cases; i++, c = next_case(c)) {
            if (c->id != id)
                continue;
            printf("case %u of %s, traits %#x, seed %#llx\n", id, group_name(file, c->group),
                   c->traits, (unsigned long long)c->seed);
            show_code(c);
            show_sets(c);
        }
    }
    return 0;
}
