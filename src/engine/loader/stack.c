// SPDX-License-Identifier: MIT
//
// The client's first stack, laid out as the kernel does it. From the top: eight
// zero bytes, the name of the program, the strings of envp and argv, the
// platform string, 16 random bytes; then, from rsp up, argc, argv, envp, auxv.
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/aspace/aspace.h"
#include "engine/loader/loader_internal.h"

#define STACK_TOP       (CLIENT_END - 16 * PAGE_SIZE)
#define STACK_MIN       (1 * MiB)
#define STACK_UNLIMITED (1 * GiB)
#define STACK_MAX       (16 * GiB)
#define AUXV_MAX        64

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#define AT_RSEQ_ALIGN        28
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

typedef struct Writer {
    u64 low; // bottom of the stack
    u64 at;  // everything from here to the top is written
    bool failed;
} Writer;

static void push_bytes(Writer *w, const void *src, size_t len)
{
    if (w->failed || len > w->at - w->low) {
        w->failed = true;
        return;
    }
    w->at -= len;
    w->failed = !guest_write(w->at, src, len);
}

static u64 push_string(Writer *w, const char *text)
{
    push_bytes(w, text, strlen(text) + 1);
    return w->at;
}

static void push_word(Writer *w, u64 word)
{
    push_bytes(w, &word, sizeof word);
}

u64 loader_stack_bytes;

static u64 stack_size(void)
{
    struct rlimit limit;

    if (loader_stack_bytes)
        return PAGE_UP(max_u64(loader_stack_bytes, STACK_MIN));

    if (getrlimit(RLIMIT_STACK, &limit) < 0)
        return 8 * MiB;
    aspace_may_grow = limit.rlim_cur > STACK_MAX;
    if (limit.rlim_cur == RLIM_INFINITY)
        return STACK_UNLIMITED;
    return PAGE_UP(min_u64(max_u64(limit.rlim_cur, STACK_MIN), STACK_MAX));
}

static bool map_stack(bool executable, Writer *ret_writer)
{
    u64 size = stack_size();
    u64 prot = PROT_READ | PROT_WRITE | (executable ? PROT_EXEC : 0);
    u64 flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED_NOREPLACE;

    if (aspace_map_named(STACK_TOP - size, size, prot, flags, -1, 0, "[stack]") < 0)
        return false;
    // One huge page at the top would make every small program 2 MiB larger.
    syscall(SYS_madvise, STACK_TOP - size, size, MADV_NOHUGEPAGE);
    *ret_writer = (Writer){.low = STACK_TOP - size, .at = STACK_TOP};
    return true;
}

// ---------------------------------------------------------------- auxv

typedef struct Strings {
    u64 exe_name, platform, random;
} Strings;

static u32 count_words(char **list)
{
    u32 n = 0;

    while (list[n])
        n++;
    return n;
}

// What the client sees for an entry that the kernel gave the engine. False: not to be passed on.
static bool client_auxv(const StackRequest *r, const Strings *s, Elf64_auxv_t *entry)
{
    u64 *value = &entry->a_un.a_val;

    switch (entry->a_type) {
    case AT_PHDR:
        *value = r->program->phdr;
        return true;
    case AT_PHENT:
        *value = sizeof(Elf64_Phdr);
        return true;
    case AT_PHNUM:
        *value = r->program->phdr_count;
        return true;
    case AT_BASE:
        *value = r->interp_base;
        return true;
    case AT_ENTRY:
        *value = r->program->entry;
        return true;
    case AT_EXECFN:
        *value = s->exe_name;
        return true;
    case AT_RANDOM:
        *value = s->random;
        return true;
    case AT_PLATFORM:
        *value = s->platform;
        return true;
    case AT_BASE_PLATFORM:
        return false;
    case AT_SYSINFO_EHDR:
        *value = r->vdso;
        return r->vdso != 0;
    case AT_SECURE:
        *value = 0;
        return true;
    // The engine's libc has registered its own rseq area for this thread.
    case AT_RSEQ_FEATURE_SIZE:
        return false;
    case AT_RSEQ_ALIGN:
        return false;
    case AT_EXECFD:
        return false;
    default:
        return true;
    }
}

// The engine's own entries. Without /proc libc tells them one by one.
static u32 own_auxv(Elf64_auxv_t own[AUXV_MAX])
{
    enum { LAST_KNOWN = 63 };
    i64 len = read_whole("/proc/self/auxv", own, AUXV_MAX * sizeof own[0]);
    u32 count = len > 0 ? (u32)len / sizeof own[0] : 0;

    for (u64 type = 2; len <= 0 && type <= LAST_KNOWN && count < AUXV_MAX; type++) {
        errno = 0;
        u64 value = getauxval(type);
        if (value || errno == 0)
            own[count++] = (Elf64_auxv_t){.a_type = type, .a_un.a_val = value};
    }
    return count;
}

// Fills `auxv` with the client's entries, AT_NULL last; returns their number.
static u32 collect_auxv(const StackRequest *r, const Strings *s, Elf64_auxv_t *auxv)
{
    Elf64_auxv_t own[AUXV_MAX];
    u32 count = 0, own_count = own_auxv(own);

    for (u32 i = 0; i < own_count && own[i].a_type != AT_NULL; i++)
        if (client_auxv(r, s, &own[i]))
            auxv[count++] = own[i];
    auxv[count++] = (Elf64_auxv_t){.a_type = AT_NULL};
    return count;
}

// ---------------------------------------------------------------- layout

static u64 push_random(Writer *w)
{
    u8 random[16] = {0};

    syscall(SYS_getrandom, random, sizeof random, 0);
    push_bytes(w, random, sizeof random);
    return w->at;
}

// The strings lie in the order of the list, as `ps` and setproctitle() expect.
static void push_strings(Writer *w, char **list, u32 count, u64 *ret_start, u64 *ret_end)
{
    *ret_end = w->at;
    for (u32 i = count; i-- > 0;)
        push_string(w, list[i]);
    *ret_start = w->at;
}

// Pointers to `count` strings that lie one behind the other from `string` on.
static void write_pointers(Writer *w, u64 at, u64 string, char **list, u32 count)
{
    for (u32 i = 0; i < count && !w->failed; i++) {
        w->failed = !guest_write(at + i * sizeof(u64), &string, sizeof string);
        string += strlen(list[i]) + 1;
    }
}

static void push_tables(Writer *w, const StackRequest *r, const Strings *s, StackLayout *l)
{
    Elf64_auxv_t auxv[AUXV_MAX + 1];
    u32 auxv_count = collect_auxv(r, s, auxv);
    u32 argc = (u32)r->argc, envc = count_words(r->envp);
    u64 words = 1 + argc + 1 + envc + 1;

    l->auxv_size = auxv_count * sizeof auxv[0];
    w->at &= ~15ull;
    if ((words * sizeof(u64) + l->auxv_size) % 16)
        push_word(w, 0); // so that rsp, pointing at argc, is a multiple of 16
    push_bytes(w, auxv, l->auxv_size);
    l->auxv = w->at;
    if (w->failed || words * sizeof(u64) > w->at - w->low) {
        w->failed = true;
        return;
    }
    w->at -= words * sizeof(u64); // fresh memory: the NULLs are there already
    l->sp = w->at;
    u64 count = argc;
    w->failed = !guest_write(l->sp, &count, sizeof count);
    write_pointers(w, l->sp + 8, l->arg_start, r->argv, argc);
    write_pointers(w, l->sp + 8 * (argc + 2ull), l->env_start, r->envp, envc);
}

bool stack_build(const StackRequest *request, StackLayout *ret_layout)
{
    Writer w;
    StackLayout layout = {0};
    Strings strings;

    if (!map_stack(request->program->exec_stack, &w))
        return load_error(request->exe_name, "no memory for its stack");
    push_word(&w, 0);
    strings.exe_name = push_string(&w, request->exe_name);
    push_strings(&w, request->envp, count_words(request->envp), &layout.env_start, &layout.env_end);
    push_strings(&w, request->argv, (u32)request->argc, &layout.arg_start, &layout.arg_end);
    strings.platform = push_string(&w, "x86_64");
    strings.random = push_random(&w);
    push_tables(&w, request, &strings, &layout);
    if (w.failed)
        return load_error(request->exe_name, "its arguments and environment do not fit its stack");
    *ret_layout = layout;
    return true;
}
