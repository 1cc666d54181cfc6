// SPDX-License-Identifier: MIT
//
// The files of /proc that are made here: their text in memory, behind a read-only
// descriptor at the number the client would have got; made again when it is read
// from its start.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own_file.h"
#include "base/pages.h"
#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/limits/limits.h"
#include "engine/loader/loader.h"
#include "engine/procview/procview_internal.h"

// Parts of the client's first stack.
typedef struct Span {
    GuestAddr start, end;
} Span;

static Span arguments, environment, auxv;
static bool kernel_knows; // cmdline, environ and auxv are right without us
static int exe_fd = -1;   // hidden: the client's program

// --------------------------------------------------------------------- start

static void exe_moved(int fd)
{
    exe_fd = fd;
}

static void keep_exe(void)
{
    i64 fd = raw_syscall3(SYS_open, (u64)loader_exe_path(), O_PATH | O_CLOEXEC, 0);

    if (fd < 0)
        return;
    descriptor_hide((int)fd, exe_moved);
    raw_syscall1(SYS_close, (u64)fd);
}

void files_exe_path(char *dst, size_t max)
{
    dst[0] = '\0';
    if (exe_fd >= 0)
        text_format(dst, max, "/proc/thread-self/fd/%d", exe_fd);
}

// The strings of a vector lie behind one another. Returns where its NULL is.
static const u64 *strings_span(const u64 *vector, Span *ret_span)
{
    *ret_span = (Span){ vector[0], vector[0] };
    for (; *vector; vector++)
        ret_span->end = *vector + strlen((const char *)*vector) + 1;
    return vector;
}

static bool kernel_shows_auxv(void)
{
    u8 seen[1024];
    u64 size = min_u64(auxv.end - auxv.start, sizeof(seen));
    i64 fd = raw_syscall3(SYS_open, (u64) "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return true; // no /proc: nothing to be wrong
    i64 got = raw_syscall3(SYS_read, (u64)fd, (u64)seen, size);
    raw_syscall1(SYS_close, (u64)fd);
    return got == (i64)size && memcmp(seen, (const void *)auxv.start, size) == 0;
}

// The stack is what the loader has just built: argc, argv, envp, auxv.
void procview_init(GuestAddr sp)
{
    const u64 *vector = (const u64 *)sp + 1;

    vector = strings_span(vector, &arguments) + 1;
    vector = strings_span(vector, &environment) + 1;
    const Elf64_auxv_t *last = (const Elf64_auxv_t *)vector;
    while (last->a_type != AT_NULL)
        last++;
    auxv = (Span){ (u64)vector, (u64)(last + 1) };
    kernel_knows = kernel_shows_auxv();
    keep_exe();
}

// ---------------------------------------------------------------------- text

typedef ProcText Text;

static bool text_grow(Text *text)
{
    u64 size = text->size ? text->size * 2 : 64 * KiB;
    char *data = text->size ? pages_resize(text->data, text->size, size) : pages_map(size);

    if (!data)
        return false;
    text->data = data;
    text->size = size;
    return true;
}

// The longest line of maps: a path of 4096 bytes, some of them escaped, and the numbers.
#define LINE_BYTES (32 * KiB)

static bool make_maps(Text *text)
{
    do {
        if (!text_grow(text))
            return false;
        text->len = aspace_maps_text(text->data, text->size);
    } while (text->len + LINE_BYTES > text->size);
    return true;
}

static bool make_from_memory(Text *text, Span span)
{
    u64 len = span.end - span.start;

    while (text->size < len)
        if (!text_grow(text))
            return false;
    // As the kernel, when the client has unmapped its arguments: nothing.
    text->len = guest_read(span.start, text->data, len) ? len : 0;
    return true;
}

// --------------------------------------------------------------------- smaps

static bool read_file(const char *path, Text *text)
{
    i64 fd = raw_syscall3(SYS_open, (u64)path, O_RDONLY | O_CLOEXEC, 0);
    i64 got = fd;

    while (got >= 0 && (text->len < text->size || text_grow(text))) {
        got = raw_syscall3(SYS_read, (u64)fd, (u64)(text->data + text->len),
                           text->size - text->len);
        if (got == 0)
            break;
        text->len += got > 0 ? (u64)got : 0;
    }
    if (fd >= 0)
        raw_syscall1(SYS_close, (u64)fd);
    return got == 0;
}

// Whether `line` starts a mapping, "start-end perms …", and where that starts.
static bool is_mapping_line(const char *line, GuestAddr *ret_start)
{
    char *end;

    *ret_start = strtoull(line, &end, 16);
    return end != line && *end == '-';
}

// Ours are not shown; of the client's the permissions are those it asked for. The
// vsyscall page is nobody's and stays. Engine lock held.
static bool correct_mapping_line(char *line, GuestAddr start)
{
    const Mapping *m = aspace_find(start);
    char *permissions = strchr(line, ' ');

    if (!m || !permissions)
        return start >> 63;
    permissions[1] = m->prot & 1 ? 'r' : '-';
    permissions[2] = m->prot & 2 ? 'w' : '-';
    permissions[3] = m->prot & 4 ? 'x' : '-';
    return true;
}

// Line by line, in place.
static void keep_client_mappings(Text *text)
{
    char *to = text->data, *end = text->data + text->len;
    bool keep = false;

    for (char *line = text->data; line < end;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *next = newline ? newline + 1 : end;
        GuestAddr start;
        if (is_mapping_line(line, &start))
            keep = correct_mapping_line(line, start);
        if (keep) {
            memmove(to, line, (size_t)(next - line));
            to += next - line;
        }
        line = next;
    }
    text->len = (u64)(to - text->data);
}

static bool make_smaps(Text *text)
{
    if (!read_file("/proc/self/smaps", text))
        return false;
    lock_acquire(&engine_lock);
    keep_client_mappings(text);
    lock_release(&engine_lock);
    return true;
}

// --------------------------------------------------------------------- sizes

static void text_free(Text *text)
{
    if (text->data)
        pages_unmap(text->data, text->size);
}

static bool make_sizes(ProcFile file, Text *text)
{
    Text maps = { NULL, 0, 0 }, smaps = { NULL, 0, 0 }, kernels = { NULL, 0, 0 };
    const char *path = file == PROC_STATM  ? "/proc/self/statm"
                       : file == PROC_STAT ? "/proc/self/stat"
                                           : "/proc/self/status";
    bool made = make_maps(&maps) && make_smaps(&smaps) && read_file(path, &kernels) &&
                text_grow(text) && kernels.len + KiB < text->size;

    if (made)
        sizes_write(file, &maps, &smaps, &kernels, text);
    text_free(&maps);
    text_free(&smaps);
    text_free(&kernels);
    return made;
}

// -------------------------------------------------------------------- limits

#define LIMIT_COLUMN 26 // behind the name, padded to 25, and a blank
#define LIMIT_WIDTH 20

static void put_limit(char *column, u64 value)
{
    char number[LIMIT_WIDTH + 1];
    size_t len = value == ~0ull ? text_format(number, sizeof(number), "unlimited")
                                : text_format(number, sizeof(number), "%lu", value);

    memset(column, ' ', LIMIT_WIDTH);
    memcpy(column, number, len);
}

// The kernel's lines have columns of fixed width.
static void correct_limit(Text *text, const char *name, bool is_data)
{
    u64 soft, hard;
    char *line = memmem(text->data, text->len, name, strlen(name));

    if (!line || line + LIMIT_COLUMN + 2 * LIMIT_WIDTH + 1 > text->data + text->len)
        return;
    limits_of_client(&thread_ctx, is_data, &soft, &hard);
    put_limit(line + LIMIT_COLUMN, soft);
    put_limit(line + LIMIT_COLUMN + LIMIT_WIDTH + 1, hard);
}

static bool make_limits(Text *text)
{
    if (!read_file("/proc/self/limits", text))
        return false;
    correct_limit(text, "Max address space ", false);
    correct_limit(text, "Max data size ", true);
    return true;
}

// ---------------------------------------------------------------------- open

static bool make_text(ProcFile file, Text *text)
{
    switch (file) {
    case PROC_MAPS: return make_maps(text);
    case PROC_SMAPS: return make_smaps(text);
    case PROC_LIMITS: return make_limits(text);
    case PROC_STATM:
    case PROC_STAT:
    case PROC_STATUS: return make_sizes(file, text);
    case PROC_CMDLINE: return make_from_memory(text, arguments);
    case PROC_ENVIRON: return make_from_memory(text, environment);
    case PROC_AUXV: return make_from_memory(text, auxv);
    default: return false;
    }
}

bool files_is_ours(ProcFile file)
{
    bool kernels = file == PROC_CMDLINE || file == PROC_ENVIRON || file == PROC_AUXV;

    return !kernels || !kernel_knows;
}

// A new descriptor of memory that holds the text, or -errno.
static i64 memory_file(const Text *text)
{
    i64 fd = raw_syscall2(SYS_memfd_create, (u64) "proc", MFD_ALLOW_SEALING);

    if (fd >= 0 && !own_file_write((int)fd, text->data, text->len)) {
        raw_syscall1(SYS_close, (u64)fd);
        return -ENOMEM;
    }
    return fd;
}

// Replaces the descriptor, which can be written to and is at its end, by one that
// is as after an open with these flags. The number stays. Where no second number
// is left, only writing is more than it should be, and a seal forbids that.
static i64 reopen(i64 fd, u64 open_flags)
{
    char path[32];
    u64 keep = O_NONBLOCK | O_CLOEXEC;

    text_format(path, sizeof(path), "/proc/thread-self/fd/%d", (int)fd);
    i64 again = raw_syscall3(SYS_open, (u64)path, O_RDONLY | (open_flags & keep), 0);
    if (again < 0) {
        raw_syscall3(SYS_fcntl, (u64)fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
        raw_syscall3(SYS_fcntl, (u64)fd, F_SETFD, open_flags & O_CLOEXEC ? FD_CLOEXEC : 0);
        raw_syscall3(SYS_lseek, (u64)fd, 0, SEEK_SET);
        return fd;
    }
    raw_syscall3(SYS_dup3, (u64)again, (u64)fd, open_flags & O_CLOEXEC);
    raw_syscall1(SYS_close, (u64)again);
    return fd;
}

static i64 open_text(ProcFile file, u64 open_flags)
{
    Text text = { NULL, 0, 0 };
    i64 fd = -ENOMEM;

    if (make_text(file, &text))
        fd = memory_file(&text);
    if (fd >= 0)
        fd = reopen(fd, open_flags);
    text_free(&text);
    return fd;
}

// ------------------------------------------------------------------- freshness
//
// The kernel writes such a file anew when it is read from its start. So do we: whoever reads at
// position 0 gets another file behind the same number.

typedef struct OpenFile {
    ProcFile file;
    int fd;
    u64 dev, inode; // of the memory behind it; something else: the client has closed it
} OpenFile;

#define OPEN_MAX 16
static OpenFile open_files[OPEN_MAX]; // engine lock; the oldest are forgotten
static u32 opened;                    // ever
u32 procview_open_files;              // atomic

static bool identify(int fd, OpenFile *file)
{
    struct stat st;

    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&st) != 0)
        return false;
    file->dev = st.st_dev;
    file->inode = st.st_ino;
    return true;
}

static void remember(ProcFile file, int fd)
{
    OpenFile open = { .file = file, .fd = fd };

    if (!identify(fd, &open))
        return;
    lock_acquire(&engine_lock);
    u32 slot = opened++ % OPEN_MAX;
    for (u32 i = 0; i < OPEN_MAX; i++)
        if (open_files[i].file && open_files[i].fd == fd)
            slot = i;
    open_files[slot] = open;
    __atomic_store_n(&procview_open_files, 1, __ATOMIC_RELAXED);
    lock_release(&engine_lock);
}

static bool recall(int fd, OpenFile *ret_open)
{
    bool found = false;

    lock_acquire(&engine_lock);
    for (u32 i = 0; i < OPEN_MAX && !found; i++) {
        if (open_files[i].file && open_files[i].fd == fd) {
            *ret_open = open_files[i];
            found = true;
        }
    }
    lock_release(&engine_lock);
    return found;
}

void procview_refresh(int fd, i64 at)
{
    OpenFile open, now;

    if (!recall(fd, &open) || !identify(fd, &now) || now.inode != open.inode ||
        now.dev != open.dev)
        return;
    if (at < 0)
        at = raw_syscall3(SYS_lseek, (u64)fd, 0, SEEK_CUR);
    if (at != 0)
        return;
    u64 cloexec = raw_syscall2(SYS_fcntl, (u64)fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
    i64 fresh = open_text(open.file, cloexec);
    if (fresh < 0)
        return; // no number free: the old text stays
    raw_syscall3(SYS_dup3, (u64)fresh, (u64)fd, cloexec);
    raw_syscall1(SYS_close, (u64)fresh);
    remember(open.file, fd);
}

i64 files_open(ProcFile file, u64 open_flags)
{
    i64 fd = open_text(file, open_flags);

    if (fd >= 0)
        remember(file, (int)fd);
    return fd;
}
