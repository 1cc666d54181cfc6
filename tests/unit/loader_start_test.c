// SPDX-License-Identifier: MIT
//
// The loader without the engine: each case loads in a forked child. The stack is
// checked by walking it as a libc would, and, strongest, the loaded program is
// given its execute permission on the host and simply runs.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/aspace/aspace.h"
#include "engine/loader/loader.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

#define EXIT_OK 42

static char *test_env[] = {"LANG=C", "EMPTY=", "PATH=/usr/bin:/bin", NULL};

typedef struct Loaded {
    u64 entry, sp;
    const char *path;
    int argc;
    char **argv;
} Loaded;

// Runs `check` on the loaded program in a child; its exit status, or 256 + the signal.
static int in_child(char **argv, int (*check)(const Loaded *))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        Loaded l = {.path = argv[0], .argv = argv};
        while (argv[l.argc])
            l.argc++;
        aspace_init();
        if (!loader_start(argv[0], l.argc, argv, test_env, &l.entry, &l.sp))
            _exit(1);
        _exit(check(&l));
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

// In the child: which expectation failed is the exit status.
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                                  \
            return 2;                                                                              \
        }                                                                                          \
    } while (0)

static u64 word(u64 at)
{
    return *(u64 *)at;
}

static u64 auxv_value(const Elf64_auxv_t *auxv, u64 type, u64 missing)
{
    for (; auxv->a_type != AT_NULL; auxv++)
        if (auxv->a_type == type)
            return auxv->a_un.a_val;
    return missing;
}

static const Elf64_auxv_t *find_auxv(const Loaded *l)
{
    u64 at = l->sp + 8 * (word(l->sp) + 2);

    while (word(at))
        at += 8;
    return (const Elf64_auxv_t *)(at + 8);
}

static int check_stack(const Loaded *l)
{
    EXPECT(l->sp % 16 == 0);
    EXPECT(word(l->sp) == (u64)l->argc);
    for (int i = 0; i < l->argc; i++)
        EXPECT(strcmp((char *)word(l->sp + 8 + 8 * (u64)i), l->argv[i]) == 0);
    EXPECT(word(l->sp + 8 + 8 * (u64)l->argc) == 0);
    u64 env = l->sp + 8 * ((u64)l->argc + 2);
    for (int i = 0; test_env[i]; i++)
        EXPECT(strcmp((char *)word(env + 8 * (u64)i), test_env[i]) == 0);
    const Mapping *m = aspace_find(l->sp);
    EXPECT(m && m->name && strcmp(m->name, "[stack]") == 0 && m->prot == (PROT_READ | PROT_WRITE));
    return EXIT_OK;
}

static int check_auxv(const Loaded *l)
{
    const Elf64_auxv_t *auxv = find_auxv(l);

    EXPECT(auxv_value(auxv, AT_PAGESZ, 0) == 4096);
    EXPECT(strcmp((char *)auxv_value(auxv, AT_EXECFN, 0), l->path) == 0);
    EXPECT(strcmp((char *)auxv_value(auxv, AT_PLATFORM, 0), "x86_64") == 0);
    EXPECT(auxv_value(auxv, AT_RANDOM, 0) > l->sp);
    EXPECT(auxv_value(auxv, AT_SECURE, 1) == 0);
    EXPECT(auxv_value(auxv, 27, 0) == 0 && auxv_value(auxv, 28, 0) == 0);
    EXPECT(auxv_value(auxv, AT_HWCAP, 0) != 0);

    // The program headers are where AT_PHDR says, and lie in the program itself.
    const Elf64_Phdr *phdr = (const Elf64_Phdr *)auxv_value(auxv, AT_PHDR, 0);
    EXPECT(aspace_find((u64)phdr) != NULL);
    EXPECT(strcmp(aspace_find((u64)phdr)->name, loader_exe_path()) == 0);
    u64 loads = 0;
    for (u64 i = 0; i < auxv_value(auxv, AT_PHNUM, 0); i++)
        loads += phdr[i].p_type == PT_LOAD;
    EXPECT(loads >= 1);

    GuestAddr end;
    EXPECT(aspace_executable(auxv_value(auxv, AT_ENTRY, 0), &end));
    EXPECT(aspace_executable(l->entry, &end));
    u64 base = auxv_value(auxv, AT_BASE, 1);
    if (base)
        EXPECT(memcmp((void *)base, ELFMAG, SELFMAG) == 0 && l->entry > base);
    else
        EXPECT(l->entry == auxv_value(auxv, AT_ENTRY, 0));
    return EXIT_OK;
}

static int check_vdso(const Loaded *l)
{
    u64 vdso = auxv_value(find_auxv(l), AT_SYSINFO_EHDR, 0);

    EXPECT(vdso != 0);
    const Mapping *m = aspace_find(vdso);
    EXPECT(m && strcmp(m->name, "[vdso]") == 0 && m->prot == (PROT_READ | PROT_EXEC));
    EXPECT(memcmp((void *)vdso, ELFMAG, SELFMAG) == 0);
    u8 magic[4];
    EXPECT(guest_read(vdso, magic, sizeof magic));
    if (vdso < CLIENT_END)
        EXPECT(vdso < CACHE_START);
    return EXIT_OK;
}

static int check_proc(const Loaded *l)
{
    char text[4096], wanted[4096];
    size_t len = 0;

    for (int i = 0; i < l->argc; i++) {
        strcpy(wanted + len, l->argv[i]);
        len += strlen(l->argv[i]) + 1;
    }
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t got = read(fd, text, sizeof text);
    EXPECT(got == (ssize_t)len && memcmp(text, wanted, len) == 0);
    fd = open("/proc/self/comm", O_RDONLY);
    got = read(fd, text, sizeof text);
    EXPECT(got == 5 && memcmp(text, "true\n", 5) == 0);
    fd = open("/proc/self/environ", O_RDONLY);
    got = read(fd, text, sizeof text);
    EXPECT(got > 0 && memcmp(text, "LANG=C\0EMPTY=", 14) == 0);
    fd = open("/proc/self/auxv", O_RDONLY);
    got = read(fd, text, sizeof text);
    EXPECT(got > 0 && memcmp(text, find_auxv(l), 64) == 0);
    return EXIT_OK;
}

// Gives every executable mapping its permission on the host and goes.
static int run_natively(const Loaded *l)
{
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m))
        if ((m->prot & PROT_EXEC) && strcmp(m->name ? m->name : "", "[vdso]") != 0)
            syscall(SYS_mprotect, m->start, m->end - m->start, m->prot);
    __asm__ volatile("mov %0, %%rsp\n"
                     "xor %%edx, %%edx\n"
                     "xor %%ebp, %%ebp\n"
                     "jmp *%1\n"
                     :
                     : "r"(l->sp), "r"(l->entry)
                     : "memory", "rdx");
    __builtin_unreachable();
}

// Ends with 42 if libc, bss, arguments and vdso are all as they should be.
static const char with_libc[] =
    "#include <stdlib.h>\n"
    "#include <time.h>\n"
    "static char bss[99999];\n"
    "int main(int c, char **v)\n"
    "{\n"
    "    struct timespec t;\n"
    "    char *p = malloc(9);\n"
    "    p[0] = bss[c];\n"
    "    for (int i = 0; i < 99999; i++)\n"
    "        if (bss[i])\n"
    "            return 3;\n"
    "    return clock_gettime(CLOCK_MONOTONIC, &t) == 0 && c == 2 && v[1][0] == 65 ? 42 : 1;\n"
    "}\n";

// Ends with argc + 40, with no library that would have to be linked to its place.
static const char without_libc[] = "__asm__(\".globl _start\\n\"\n"
                                   "\"_start: mov (%rsp), %rdi\\n\"\n"
                                   "\"add $40, %rdi\\n\"\n"
                                   "\"mov $231, %eax\\n\"\n"
                                   "\"syscall\\n\");\n";

// Builds a C program with the given compiler and flags; the path of the result, or NULL.
static char *build(const char *name, const char *compiler, const char *source)
{
    static char path[256];
    char command[1024];

    snprintf(path, sizeof path, "/tmp/muninn_loader_%s_%d", name, getpid());
    snprintf(command, sizeof command, "%s -x c - -o %s 2>/dev/null", compiler, path);
    FILE *input = popen(command, "w");
    fputs(source, input);
    return pclose(input) == 0 ? path : NULL;
}

static void check_built_from(const char *name, const char *compiler, const char *source)
{
    char *path = build(name, compiler, source);
    if (!path) {
        printf("# skipped, cannot build: %s\n", compiler);
        return;
    }
    char *argv[] = {path, "A", NULL};
    int stack = in_child(argv, check_stack);
    int auxv = in_child(argv, check_auxv);
    int run = in_child(argv, run_natively);
    unlink(path);
    CHECK(stack == EXIT_OK);
    CHECK(auxv == EXIT_OK);
    CHECK(run == EXIT_OK);
}

static void check_built(const char *name, const char *compiler)
{
    check_built_from(name, compiler, with_libc);
}

static char *true_argv[] = {"/bin/true", "one", "", "three words here", NULL};

TEST(stack_holds_arguments_and_environment)
{
    CHECK(in_child(true_argv, check_stack) == EXIT_OK);
}
TEST(auxv_describes_program_and_interpreter)
{
    CHECK(in_child(true_argv, check_auxv) == EXIT_OK);
}
TEST(vdso_is_near_and_readable)
{
    CHECK(in_child(true_argv, check_vdso) == EXIT_OK);
}
TEST(proc_shows_the_clients_command_line)
{
    CHECK(in_child(true_argv, check_proc) == EXIT_OK);
}
TEST(loaded_bin_true_runs)
{
    CHECK(in_child(true_argv, run_natively) == 0);
}
TEST(pie_runs)
{
    check_built("pie", "gcc -O1 -pie -fPIE");
}
TEST(non_pie_runs)
{
    check_built("nopie", "gcc -O1 -no-pie");
}
TEST(static_runs)
{
    check_built("static", "gcc -O1 -static");
}
TEST(static_pie_runs)
{
    check_built("staticpie", "gcc -O1 -static-pie");
}
TEST(musl_runs)
{
    check_built("musl", "musl-gcc -O1");
}
TEST(static_musl_runs)
{
    check_built("muslstatic", "musl-gcc -O1 -static");
}
TEST(large_segment_alignment_runs)
{
    check_built("align", "gcc -O1 -Wl,-z,max-page-size=0x200000");
}
TEST(executable_with_high_fixed_address_runs)
{
    check_built("high", "gcc -O1 -static -no-pie -Wl,-Ttext-segment=0x40000000");
}

TEST(executable_beyond_four_gib_runs)
{
    check_built_from("far", "gcc -nostdlib -static -no-pie -Wl,-Ttext-segment=0x300000000",
                     without_libc);
}

TEST(executable_linked_into_the_cache_is_refused)
{
    char *path = build("cache", "gcc -O1 -static -no-pie -Wl,-Ttext-segment=0x60000000", with_libc);
    CHECK(path != NULL);
    char *argv[] = {path, "A", NULL};
    int saved = dup(2), out[2];
    char message[512] = "";
    CHECK(pipe(out) == 0);
    dup2(out[1], 2);
    int result = in_child(argv, check_stack);
    dup2(saved, 2);
    close(saved);
    close(out[1]);
    ssize_t len = read(out[0], message, sizeof message - 1);
    close(out[0]);
    unlink(path);
    CHECK(result == 1 && len > 0);
    CHECK(strstr(message, "has a segment where the engine must be\n") != NULL);
}

static int check_exec_stack(const Loaded *l)
{
    EXPECT(aspace_find(l->sp)->prot & PROT_EXEC);
    return EXIT_OK;
}

TEST(executable_stack_is_recorded)
{
    char *path = build("execstack", "gcc -O1 -z execstack", with_libc);
    CHECK(path != NULL);
    char *argv[] = {path, "A", NULL};
    int result = in_child(argv, check_exec_stack);
    unlink(path);
    CHECK(result == EXIT_OK);
}

TEST(unlimited_stack_is_one_gib)
{
    struct rlimit old, unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_STACK, &old);
    if (setrlimit(RLIMIT_STACK, &unlimited) != 0)
        return;
    int result = in_child(true_argv, check_stack);
    setrlimit(RLIMIT_STACK, &old);
    CHECK(result == EXIT_OK);
}

// ---------------------------------------------------------------- hostile files

static int never(const Loaded *l)
{
    (void)l;
    return EXIT_OK;
}

static int load_bytes(const void *bytes, size_t len)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/muninn_loader_bad_%d", getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0755);
    ssize_t wrote = write(fd, bytes, len);
    close(fd);
    char *argv[] = {path, NULL};
    int saved = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    int result = in_child(argv, never);
    dup2(saved, 2);
    close(saved);
    close(null);
    unlink(path);
    return wrote == (ssize_t)len ? result : -1;
}

TEST(damaged_executables_are_refused_or_loaded_never_fatal)
{
    static u8 original[256 * 1024], copy[256 * 1024];
    int fd = open("/bin/true", O_RDONLY);
    ssize_t len = read(fd, original, sizeof original);
    close(fd);
    CHECK(len > 1000);
    CHECK(load_bytes(original, 10) == 1);
    CHECK(load_bytes(original, 100) == 1);
    CHECK(load_bytes("#!/bin/sh\n", 10) == 1);

    srand(7);
    for (int round = 0; round < 300; round++) {
        memcpy(copy, original, (size_t)len);
        for (int i = 0; i < 4; i++) {
            size_t at = (size_t)rand() % (64 + 14 * 56);
            copy[at] = (u8)(rand() % 3 ? rand() : 0xff);
        }
        int result = load_bytes(copy, (size_t)len);
        CHECK(result == 1 || result == EXIT_OK);
    }
}
