// SPDX-License-Identifier: MIT
//
// Places: what an address meant when it was seen. Mappings that come and go, libraries that
// share an address one after the other, files that are replaced or deleted under the client,
// code without a file. The test's own process plays the client: it loads libraries that it
// has compiled, and asks by its own pid.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/symbols/symbols.h"
#include "../unit.h"

static char folder[] = "/tmp/muninn-places-XXXXXX";
static char warnings[4096];

static void keep_warning(void *opaque, const char *line)
{
    (void)opaque;
    snprintf(warnings + strlen(warnings), sizeof warnings - strlen(warnings), "%s\n", line);
}

static Symbols *new_symbols(void)
{
    warnings[0] = '\0';
    SymbolsConfig config = { .pid = getpid(), .keep_debuginfo = true, .read_inline_info = true,
                             .demangle = true, .warn = keep_warning };
    Symbols *symbols = symbols_new(&config);
    CHECK(symbols != NULL);
    return symbols;
}

__attribute__((constructor)) static void make_folder(void)
{
    if (!mkdtemp(folder))
        abort();
}

__attribute__((destructor)) static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(command);
}

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (system(command) != 0)
        FAIL("failed: %s", command);
}

// A library with one function; `flags` decide what is known of it.
static const char *library(const char *file, const char *function, const char *flags)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    shell("printf 'int %s(int x)\\n{\\n    return x + 3;\\n}\\n' > %s/%s.c && "
          "gcc -shared -fPIC -O1 %s %s/%s.c -o %s.new && mv %s.new %s",
          function, folder, file, flags, folder, file, path, path, path);
    return path;
}

// Tells symbols about every mapping of a file in this process, as the engine would.
static u64 map_from_proc(Symbols *symbols, const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024], access[8], name[512];
    unsigned long start, end, offset, inode;
    u64 first = 0;

    while (fgets(line, sizeof line, maps)) {
        name[0] = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %511[^\n]", &start, &end, access, &offset,
                   &inode, name) < 5 || strncmp(name, path, strlen(path)) != 0)
            continue;
        first = first ? first : start;
        symbols_map(symbols, &(SymbolsMapping){ .start = start, .size = end - start,
                                                .file_offset = offset, .inode = inode,
                                                .executable = access[2] == 'x', .path = path });
    }
    fclose(maps);
    return first;
}

static Frame frame_at(Symbols *symbols, CodePlace place, u64 pc)
{
    Frame frames[8];
    CHECK(symbols_frames(symbols, place, pc, false, frames, 8) >= 1);
    return frames[0];
}

static void check_name(const Frame *frame, const char *wanted)
{
    if (!wanted)
        CHECK(frame->function == NULL);
    else if (!frame->function)
        FAIL("no name, not \"%s\"", wanted);
    else
        CHECK_STR(frame->function, wanted);
}

TEST(unknown_addresses_give_one_frame_without_names)
{
    Symbols *symbols = new_symbols();
    CodePlace place = symbols_place(symbols, 0x1234);
    CHECK_EQ(place.module, 0);
    CHECK_EQ(place.offset, 0x1234);
    Frame frame = frame_at(symbols, place, 0x1234);
    CHECK(!frame.function && !frame.object && !frame.file);
    CHECK_EQ(frame.pc, 0x1234);
    Frame none;
    CHECK_EQ(symbols_frames(symbols, place, 0x1234, true, &none, 0), 0);
    CHECK_EQ(symbols_frames(symbols, place, 0x1234, true, &none, 1), 1);
    CHECK_EQ(none.pc, 0x1233);
    symbols_free(symbols);
}

TEST(mapping_and_unmapping_open_no_file)
{
    // A fifo blocks whoever opens it, and is not there for stat to be fooled by.
    char path[256];
    snprintf(path, sizeof path, "%s/fifo", folder);
    CHECK_EQ(mkfifo(path, 0600), 0);
    Symbols *symbols = new_symbols();
    int before = open("/dev/null", O_RDONLY);
    for (u64 i = 1; i < 1000; i++)
        symbols_map(symbols, &(SymbolsMapping){ .start = i << 20, .size = PAGE_SIZE,
                                                .executable = true, .path = path });
    CHECK(symbols_place(symbols, 5 << 20).module != 0);
    symbols_unmap(symbols, 0, ~0ull);
    CHECK_EQ(symbols_place(symbols, 5 << 20).module, 0);
    int after = open("/dev/null", O_RDONLY);
    CHECK_EQ(after, before + 1);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0); // no reader was started either
    close(before);
    close(after);
    symbols_free(symbols);
}

TEST(partial_unmaps_split_a_mapping)
{
    Symbols *symbols = new_symbols();
    symbols_map(symbols, &(SymbolsMapping){ .start = 0x10000, .size = 0x10000,
                                            .file_offset = 0x4000, .path = "/nowhere" });
    symbols_unmap(symbols, 0x14000, 0x2000);
    CHECK_EQ(symbols_place(symbols, 0x13fff).offset, 0x7fff);
    CHECK_EQ(symbols_place(symbols, 0x14000).module, 0);
    CHECK_EQ(symbols_place(symbols, 0x15fff).module, 0);
    CHECK_EQ(symbols_place(symbols, 0x16000).offset, 0xa000);
    symbols_map(symbols, &(SymbolsMapping){ .start = 0xf000, .size = 0x2000, .path = "/other" });
    CHECK_EQ(symbols_place(symbols, 0x10fff).offset, 0x1fff);
    CHECK_EQ(symbols_place(symbols, 0x11000).offset, 0x5000);
    symbols_unmap(symbols, 0x12000, ~0ull - 0x12000);
    CHECK_EQ(symbols_place(symbols, 0x1f000).module, 0);
    CHECK_EQ(symbols_place(symbols, 0x11fff).offset, 0x5fff);
    symbols_free(symbols);
}

TEST(mappings_agree_with_a_plain_model)
{
    enum { PAGES = 64, FILES = 4 };
    static const char *const paths[FILES] = { "/a", "/b", "/c", "/d" };
    struct { int file; u64 offset; } model[PAGES];
    u32 modules[FILES] = { 0 };
    u64 random = 12345;
    Symbols *symbols = new_symbols();

    for (int i = 0; i < PAGES; i++)
        model[i].file = -1;
    for (int round = 0; round < 20000; round++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        u64 first = random >> 33 & (PAGES - 1), count = (random >> 40 & 7) + 1;
        int file = (int)(random >> 50 & 7) % (FILES + 1) - 1;
        count = min_u64(count, PAGES - first);
        u64 offset = (random >> 55) << 12;
        if (file < 0)
            symbols_unmap(symbols, (first + 1) << 12, count << 12);
        else
            symbols_map(symbols, &(SymbolsMapping){ .start = (first + 1) << 12,
                                                    .size = count << 12, .file_offset = offset,
                                                    .path = paths[file] });
        for (u64 i = 0; i < count; i++) {
            model[first + i].file = file;
            model[first + i].offset = offset + (i << 12);
        }
        u64 page = random >> 20 & (PAGES - 1);
        CodePlace place = symbols_place(symbols, ((page + 1) << 12) + 5);
        CHECK_EQ(place.module != 0, model[page].file >= 0);
        if (place.module == 0)
            continue;
        CHECK_EQ(place.offset, model[page].offset + 5);
        u32 *known = &modules[model[page].file];
        if (!*known)
            *known = place.module;
        CHECK_EQ(place.module, *known);
    }
    symbols_free(symbols);
}

TEST(files_that_nobody_asks_about_leave_nothing_behind)
{
    Symbols *symbols = new_symbols();
    CodePlace kept = { 0 };
    for (u64 i = 1; i <= 100000; i++) {
        char path[64];
        snprintf(path, sizeof path, "/nowhere/%d", (int)(i % 1000));
        symbols_map(symbols, &(SymbolsMapping){ .start = i % 7 << 20, .size = PAGE_SIZE,
                                                .inode = i, .path = path });
        if (i == 500) {
            kept = symbols_place(symbols, (i % 7 << 20) + 8);
            CHECK(kept.module != 0);
        }
        CHECK(symbols_place(symbols, 0xdead0000).module == 0);
    }
    symbols_unmap(symbols, 0, ~0ull);
    symbols_map(symbols, &(SymbolsMapping){ .start = 0x1000, .size = PAGE_SIZE, .path = "/last" });
    CodePlace last = symbols_place(symbols, 0x1000);
    CHECK(last.module != 0 && last.module < 16 && last.module != kept.module);
    Frame frame = frame_at(symbols, kept, 0);
    CHECK_STR(frame.object, "/nowhere/500");
    symbols_free(symbols);
}

TEST(places_outlive_a_library_whose_address_another_takes)
{
    Symbols *symbols = new_symbols();
    char first[256];
    snprintf(first, sizeof first, "%s", library("first.so", "from_first", "-g"));
    const char *second = library("second.so", "from_second", "-g");
    u64 base = 0x7000000;

    symbols_map(symbols, &(SymbolsMapping){ .start = base, .size = 0x5000, .path = first,
                                            .executable = true });
    void *library_one = dlopen(first, RTLD_NOW), *library_two = dlopen(second, RTLD_NOW);
    CHECK(library_one && library_two);
    struct link_map *link;
    CHECK_EQ(dlinfo(library_one, RTLD_DI_LINKMAP, &link), 0);
    u64 in_first = (u64)(uintptr_t)dlsym(library_one, "from_first") - link->l_addr;
    CHECK_EQ(dlinfo(library_two, RTLD_DI_LINKMAP, &link), 0);
    u64 in_second = (u64)(uintptr_t)dlsym(library_two, "from_second") - link->l_addr;
    CHECK_EQ(in_first, in_second);

    CodePlace then = symbols_place(symbols, base + in_first);
    symbols_unmap(symbols, base, 0x5000);
    symbols_map(symbols, &(SymbolsMapping){ .start = base, .size = 0x5000, .path = second,
                                            .executable = true });
    CodePlace now = symbols_place(symbols, base + in_first);
    CHECK(then.module != now.module);
    Frame frame = frame_at(symbols, then, base + in_first);
    check_name(&frame, "from_first");
    CHECK_STR(frame.file, "first.so.c");
    CHECK_STR(frame.directory, folder);
    CHECK_STR(frame.object, first);
    CHECK_EQ(frame.line, 3);
    CHECK_EQ(frame.object_offset, in_first);
    frame = frame_at(symbols, now, base + in_first);
    check_name(&frame, "from_second");
    dlclose(library_one);
    dlclose(library_two);
    symbols_free(symbols);
}

TEST(without_keep_debuginfo_unmapped_code_has_no_names)
{
    SymbolsConfig config = { .pid = getpid(), .demangle = true };
    Symbols *symbols = symbols_new(&config);
    const char *path = library("kept.so", "kept", "-g");
    void *loaded = dlopen(path, RTLD_NOW);
    u64 base = map_from_proc(symbols, path), address = (u64)(uintptr_t)dlsym(loaded, "kept");
    CodePlace place = symbols_place(symbols, address);
    Frame frame = frame_at(symbols, place, address);
    check_name(&frame, "kept");
    symbols_unmap(symbols, base, 1 << 20);
    frame = frame_at(symbols, place, address);
    check_name(&frame, NULL);
    dlclose(loaded);
    symbols_free(symbols);
}

// Replaces the library by one in which the function has another name, then asks.
static void replace_and_ask(const char *flags, const char *how, const char *wanted)
{
    Symbols *symbols = new_symbols();
    char path[256];
    snprintf(path, sizeof path, "%s", library("replaced.so", "original", flags));
    void *loaded = dlopen(path, RTLD_NOW);
    CHECK(loaded != NULL);
    u64 address = (u64)(uintptr_t)dlsym(loaded, "original");
    CHECK(map_from_proc(symbols, path) != 0);
    if (strcmp(how, "delete") == 0)
        unlink(path);
    else if (strcmp(how, "rename") == 0)
        library("replaced.so", "imposter", flags);
    Frame frame = frame_at(symbols, symbols_place(symbols, address), address);
    check_name(&frame, wanted);
    CHECK_STR(frame.object, path);
    dlclose(loaded);
    symbols_free(symbols);
}

TEST(a_replaced_file_with_a_build_id_never_lends_its_names)
{
    replace_and_ask("-g -Wl,--build-id", "rename", "original");
}

TEST(a_replaced_file_without_a_build_id_never_lends_its_names)
{
    replace_and_ask("-g -Wl,--build-id=none", "rename", "original");
}

TEST(a_deleted_file_is_read_from_the_kernel_or_the_client)
{
    replace_and_ask("-g -Wl,--build-id", "delete", "original");
    replace_and_ask("-g -Wl,--build-id=none", "delete", "original");
    replace_and_ask("-s -Wl,--hash-style=sysv", "delete", "original");
    replace_and_ask("-s -Wl,--hash-style=gnu", "delete", "original");
}

// As above, where /proc/PID/map_files is closed, as it is to most users: all that is left is
// memory. The function must be in the dynamic symbols.
TEST(the_clients_memory_has_the_dynamic_symbols_of_a_file_that_is_gone)
{
    const char *path = library("memory.so", "in_memory", "-g -Wl,--build-id");
    char copy[300];
    snprintf(copy, sizeof copy, "%s", path);
    void *loaded = dlopen(copy, RTLD_NOW);
    CHECK(loaded != NULL);
    u64 address = (u64)(uintptr_t)dlsym(loaded, "in_memory");
    struct link_map *link;
    CHECK_EQ(dlinfo(loaded, RTLD_DI_LINKMAP, &link), 0);
    Symbols *symbols = new_symbols();
    // Anonymous memory with the same bytes takes the place of the file's.
    static u8 saved[0x5000];
    memcpy(saved, (void *)link->l_addr, sizeof saved);
    CHECK(mmap((void *)link->l_addr, sizeof saved, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    memcpy((void *)link->l_addr, saved, sizeof saved);
    unlink(copy);
    symbols_map(symbols, &(SymbolsMapping){ .start = link->l_addr, .size = sizeof saved,
                                            .path = copy, .executable = true });
    Frame frame = frame_at(symbols, symbols_place(symbols, address), address);
    check_name(&frame, "in_memory");
    dlclose(loaded);
    symbols_free(symbols);
}

TEST(a_build_id_that_the_engine_sent_is_believed)
{
    Symbols *symbols = new_symbols();
    const char *path = library("known.so", "known", "-g -Wl,--build-id=0x0102030405");
    void *loaded = dlopen(path, RTLD_NOW);
    struct link_map *link;
    CHECK_EQ(dlinfo(loaded, RTLD_DI_LINKMAP, &link), 0);
    u64 offset = (u64)(uintptr_t)dlsym(loaded, "known") - link->l_addr;
    dlclose(loaded);
    static const u8 right[] = { 1, 2, 3, 4, 5 }, wrong[] = { 1, 2, 3, 4, 6 };
    const u8 *ids[] = { right, wrong };
    for (u64 i = 0; i < 2; i++) {
        u64 base = 0x1000000 * (i + 1);
        symbols_map(symbols, &(SymbolsMapping){ .start = base, .size = 0x5000, .path = path,
                                                .executable = true, .build_id = ids[i],
                                                .build_id_size = 5, .inode = 1 });
        Frame frame = frame_at(symbols, symbols_place(symbols, base + offset), base + offset);
        check_name(&frame, i == 0 ? "known" : NULL);
        CHECK_STR(frame.object, path);
    }
    symbols_free(symbols);
}

TEST(the_vdso_has_names)
{
    Symbols *symbols = new_symbols();
    u64 base = getauxval(AT_SYSINFO_EHDR);
    if (!base)
        return;
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    u64 address = vdso ? (u64)(uintptr_t)dlsym(vdso, "__vdso_clock_gettime") : 0;
    if (!address)
        return;
    symbols_map(symbols, &(SymbolsMapping){ .start = base, .size = 0x2000, .path = "[vdso]",
                                            .executable = true });
    Frame frame = frame_at(symbols, symbols_place(symbols, address), address);
    CHECK(frame.function && strstr(frame.function, "clock_gettime"));
    symbols_free(symbols);
}

TEST(jit_code_is_named_by_the_perf_map_as_it_grows)
{
    Symbols *symbols = new_symbols();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    symbols_map(symbols, &(SymbolsMapping){ .start = 0x500000, .size = 0x10000, .path = "",
                                            .executable = true });
    CodePlace place = symbols_place(symbols, 0x501010);
    Frame frame = frame_at(symbols, place, 0x501010);
    check_name(&frame, NULL);

    FILE *file = fopen(path, "w");
    fputs("garbage\n501000 20 LazyCompile:*add /home/x.js:3\n0x502000 0x10 second\n501100 ", file);
    fflush(file);
    frame = frame_at(symbols, place, 0x501010);
    check_name(&frame, "LazyCompile:*add /home/x.js:3");
    CHECK_EQ(frame.function_offset, 0x10);
    CHECK(frame.object == NULL);
    frame = frame_at(symbols, symbols_place(symbols, 0x501105), 0x501105);
    check_name(&frame, NULL);
    fputs("10 third\n501008 10 recompiled\n", file); // a half line is finished
    fflush(file);
    frame = frame_at(symbols, symbols_place(symbols, 0x501105), 0x501105);
    check_name(&frame, "third");
    frame = frame_at(symbols, place, 0x501010); // the later name wins
    check_name(&frame, "recompiled");
    fclose(file);
    unlink(path);
    symbols_free(symbols);
}

TEST(a_perf_map_that_is_no_plain_file_is_left_alone)
{
    Symbols *symbols = new_symbols();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    CHECK_EQ(mkfifo(path, 0600), 0);
    Frame frame = frame_at(symbols, symbols_place(symbols, 0x9999), 0x9999);
    check_name(&frame, NULL);
    unlink(path);
    CHECK_EQ(symlink("/dev/zero", path), 0);
    frame = frame_at(symbols, symbols_place(symbols, 0x9999), 0x9999);
    check_name(&frame, NULL);
    unlink(path);
    symbols_free(symbols);
}

TEST(strings_live_as_long_as_symbols)
{
    Symbols *symbols = new_symbols();
    const char *path = library("strings.so", "lasting", "-g");
    void *loaded = dlopen(path, RTLD_NOW);
    u64 address = (u64)(uintptr_t)dlsym(loaded, "lasting"), base = map_from_proc(symbols, path);
    Frame frame = frame_at(symbols, symbols_place(symbols, address), address);
    for (int i = 0; i < 1000; i++) {
        char name[64];
        snprintf(name, sizeof name, "_ZN3foo3barILi%dEEEvv", i);
        const char *shown = symbols_demangle(symbols, name);
        CHECK(shown == symbols_demangle(symbols, name));
    }
    symbols_unmap(symbols, base, 1 << 20);
    check_name(&frame, "lasting");
    CHECK_STR(frame.mangled, "lasting");
    CHECK_STR(frame.file, "strings.so.c");
    dlclose(loaded);
    symbols_free(symbols);
}
