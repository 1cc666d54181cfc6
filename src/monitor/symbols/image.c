// SPDX-License-Identifier: MIT
//
// Finds the file of a module and proves that it is the one: by its build id, which
// the engine sends or the client's memory shows, else by inode, size and time of change.
// A file that fails is looked for where the kernel still keeps it (/proc/PID/map_files),
// then the client's memory itself has to do: its dynamic symbols are mapped.
#include "monitor/symbols/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define VDSO_SIZE_MAX    (64 * KiB)
#define NOTES_SIZE_MAX   (64 * KiB)
#define PROGRAM_HEADERS_MAX 512

// ---- notes ----------------------------------------------------------------------------------

static u64 align4(u64 size)
{
    return (size + 3) & ~3ull;
}

// Finds the GNU build id in the bytes of a note segment or section.
static bool find_build_id(const u8 *notes, size_t size, BuildId *ret_id)
{
    size_t at = 0;

    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr head;
        memcpy(&head, notes + at, sizeof head);
        u64 name = at + sizeof head;
        u64 data = name + align4(head.n_namesz);
        u64 next = data + align4(head.n_descsz);
        if (data + head.n_descsz > size)
            return false;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && head.n_descsz > 0 &&
            head.n_descsz <= READER_BUILD_ID_MAX) {
            memcpy(ret_id->bytes, notes + data, head.n_descsz);
            ret_id->size = head.n_descsz;
            return true;
        }
        if (next >= size)
            return false;
        at = next;
    }
    return false;
}

bool elf_build_id(Elf *elf, BuildId *ret_id)
{
    size_t count = 0;
    GElf_Phdr header;

    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr section;
        if (!gelf_getshdr(scn, &section) || section.sh_type != SHT_NOTE)
            continue;
        Elf_Data *data = elf_rawdata(scn, NULL);
        if (data && data->d_buf && find_build_id(data->d_buf, data->d_size, ret_id))
            return true;
    }
    if (elf_getphdrnum(elf, &count) < 0)
        return false;
    for (size_t i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++) {
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE)
            continue;
        if (header.p_filesz > NOTES_SIZE_MAX)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (i64)header.p_offset, header.p_filesz,
                                              ELF_T_BYTE);
        if (data && data->d_buf && find_build_id(data->d_buf, data->d_size, ret_id))
            return true;
    }
    return false;
}

bool build_id_equal(const BuildId *a, const BuildId *b)
{
    return a->size == b->size && a->size > 0 && memcmp(a->bytes, b->bytes, a->size) == 0;
}

// ---- files ----------------------------------------------------------------------------------

Elf *elf_open(const char *path, int *ret_fd)
{
    struct stat status;
    // A fifo in the place of a file must not block us.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    Elf *elf = NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
    if (elf && (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64)) {
        elf_end(elf);
        elf = NULL;
    }
    if (!elf) {
        close(fd);
        return NULL;
    }
    *ret_fd = fd;
    return elf;
}

Elf_Scn *elf_section(Elf *elf, const char *name)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) < 0)
        return NULL;
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr section;
        const char *found = gelf_getshdr(scn, &section) ? elf_strptr(elf, names, section.sh_name)
                                                        : NULL;
        if (found && strcmp(found, name) == 0)
            return scn;
    }
    return NULL;
}

static void add_segment(Image *image, const GElf_Phdr *header)
{
    if (header->p_type == PT_DYNAMIC) {
        image->dynamic_vaddr = header->p_vaddr;
        image->dynamic_size = header->p_filesz;
    }
    if (header->p_type != PT_LOAD || image->segment_count == IMAGE_SEGMENTS_MAX ||
        header->p_vaddr + header->p_memsz < header->p_vaddr ||
        header->p_offset + header->p_filesz < header->p_offset)
        return;
    image->segments[image->segment_count++] = (Segment){
        .vaddr = header->p_vaddr,
        .offset = header->p_offset,
        .file_size = min_u64(header->p_filesz, header->p_memsz),
        .memory_size = header->p_memsz,
        .executable = header->p_flags & PF_X,
    };
}

static void read_segments(Image *image)
{
    size_t count = 0;
    GElf_Phdr header;

    if (elf_getphdrnum(image->elf, &count) < 0)
        return;
    for (size_t i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++)
        if (gelf_getphdr(image->elf, (int)i, &header))
            add_segment(image, &header);
}

bool image_vaddr_of_offset(const Image *image, u64 offset, u64 *ret_vaddr)
{
    const Segment *found = NULL;

    // One page of the file may be mapped for two segments; what runs is in the executable one.
    for (u32 i = 0; i < image->segment_count; i++) {
        const Segment *segment = &image->segments[i];
        if (offset - segment->offset < segment->file_size &&
            (!found || (segment->executable && !found->executable)))
            found = segment;
    }
    if (!found)
        return false;
    *ret_vaddr = found->vaddr + (offset - found->offset);
    return true;
}

void image_extent(const Image *image, u64 *ret_low, u64 *ret_high)
{
    *ret_low = image->segment_count ? ~0ull : 0;
    *ret_high = 0;
    for (u32 i = 0; i < image->segment_count; i++) {
        *ret_low = min_u64(*ret_low, image->segments[i].vaddr);
        *ret_high =
            max_u64(*ret_high, image->segments[i].vaddr + image->segments[i].memory_size);
    }
}

// ---- the client's memory --------------------------------------------------------------------

static bool read_client(i32 pid, u64 address, void *buffer, size_t size)
{
    struct iovec local = { buffer, size }, remote = { (void *)(uintptr_t)address, size };
    return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool image_read(const Image *image, u64 vaddr, void *buffer, size_t size)
{
    if (!image->elf)
        return read_client(image->pid, vaddr + image->bias, buffer, size);
    size_t file_size;
    const char *file = elf_rawfile(image->elf, &file_size);
    for (u32 i = 0; file && i < image->segment_count; i++) {
        const Segment *segment = &image->segments[i];
        u64 inside = vaddr - segment->vaddr;
        if (inside >= segment->file_size || size > segment->file_size - inside)
            continue;
        u64 offset = segment->offset + inside;
        if (offset > file_size || size > file_size - offset)
            return false;
        memcpy(buffer, file + offset, size);
        return true;
    }
    return false;
}

// What the client has mapped at the address of an ELF header: segments and build id.
static bool read_client_headers(Image *image, i32 pid, u64 address)
{
    Elf64_Ehdr head;
    if (!address || !read_client(pid, address, &head, sizeof head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > PROGRAM_HEADERS_MAX)
        return false;

    Elf64_Phdr headers[PROGRAM_HEADERS_MAX];
    if (!read_client(pid, address + head.e_phoff, headers, head.e_phnum * sizeof headers[0]))
        return false;
    for (u32 i = 0; i < head.e_phnum; i++) {
        GElf_Phdr *header = &headers[i];
        if (header->p_type == PT_LOAD && header->p_offset == 0)
            image->bias = address - header->p_vaddr;
        add_segment(image, header);
    }
    image->pid = pid;
    for (u32 i = 0; i < head.e_phnum; i++) {
        u8 notes[4096];
        size_t size = min_u64(headers[i].p_filesz, sizeof notes);
        if (headers[i].p_type == PT_NOTE &&
            read_client(pid, headers[i].p_vaddr + image->bias, notes, size) &&
            find_build_id(notes, size, &image->build_id))
            break;
    }
    return image->segment_count > 0;
}

// ---- which file -----------------------------------------------------------------------------

typedef struct Expected {
    const ModuleSpec *spec;
    BuildId build_id; // size 0: not known
} Expected;

static bool is_expected(Elf *elf, int fd, const Expected *expected)
{
    const ModuleSpec *spec = expected->spec;
    BuildId found = { .size = 0 };
    struct stat status;

    if (expected->build_id.size)
        return elf_build_id(elf, &found) && build_id_equal(&found, &expected->build_id);
    if (fstat(fd, &status) < 0)
        return false;
    u64 mtime_ns = (u64)status.st_mtim.tv_sec * 1000000000ull + (u64)status.st_mtim.tv_nsec;
    return (!spec->inode || spec->inode == status.st_ino) &&
           (!spec->size_bytes || spec->size_bytes == (u64)status.st_size) &&
           (!spec->mtime_ns || spec->mtime_ns == mtime_ns);
}

static bool try_file(Image *image, const char *path, const Expected *expected)
{
    int fd;
    Elf *elf = elf_open(path, &fd);
    if (!elf)
        return false;
    if (!is_expected(elf, fd, expected)) {
        elf_end(elf);
        close(fd);
        return false;
    }
    image->elf = elf;
    image->fd = fd;
    image->segment_count = 0;
    image->dynamic_vaddr = 0;
    read_segments(image);
    elf_build_id(elf, &image->build_id);
    return true;
}

// The kernel keeps a deleted file as long as it is mapped.
static bool try_map_files(Image *image, i32 pid, const Expected *expected)
{
    char folder[64], path[128];
    u64 start;
    bool found = false;

    snprintf(folder, sizeof folder, "/proc/%d/map_files", pid);
    DIR *list = opendir(folder);
    if (!list)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(list));) {
        if (sscanf(entry->d_name, "%lx-", &start) != 1 || start != expected->spec->header_address)
            continue;
        snprintf(path, sizeof path, "%s/%.40s", folder, entry->d_name);
        found = try_file(image, path, expected);
    }
    closedir(list);
    return found;
}

// Every process has the same vdso, and ours is in our own memory.
static bool open_vdso(Image *image)
{
    const u8 *vdso = (const u8 *)getauxval(AT_SYSINFO_EHDR);
    if (!vdso)
        return false;
    // Its section headers come last, so that they tell its size.
    Elf64_Ehdr head;
    memcpy(&head, vdso, sizeof head);
    u64 size = head.e_shoff + (u64)head.e_shnum * head.e_shentsize;
    if (size < sizeof head || size > VDSO_SIZE_MAX)
        return false;
    image->copy = malloc(size);
    if (!image->copy)
        return false;
    memcpy(image->copy, vdso, size);
    image->elf = elf_memory((char *)image->copy, size);
    if (!image->elf)
        return false;
    read_segments(image);
    elf_build_id(image->elf, &image->build_id);
    return true;
}

static bool open_any_file(Image *image, const Expected *expected, i32 pid)
{
    static const char deleted[] = " (deleted)";
    const char *path = expected->spec->path;
    size_t length = strlen(path);
    char other[4200];

    if (try_file(image, path, expected))
        return true;
    if (length > sizeof deleted - 1 &&
        strcmp(path + length - (sizeof deleted - 1), deleted) == 0) {
        snprintf(other, sizeof other, "%.*s", (int)(length - (sizeof deleted - 1)), path);
        if (try_file(image, other, expected))
            return true;
    }
    if (pid <= 0)
        return false;
    // A client in a chroot or container has names of its own.
    snprintf(other, sizeof other, "/proc/%d/root%s", pid, path);
    return try_file(image, other, expected) ||
           (expected->spec->header_address && try_map_files(image, pid, expected));
}

bool image_open(Image *image, const ModuleSpec *spec, const SymbolsConfig *config)
{
    Expected expected = { .spec = spec };
    Image client = { .fd = -1 };

    *image = (Image){ .fd = -1, .path = strdup(spec->path) };
    if (!image->path)
        return false;
    if (strcmp(spec->path, "[vdso]") == 0)
        return open_vdso(image);
    if (spec->path[0] != '/') // [heap], [vsyscall]: a name of the kernel's, not a file of ours
        return false;

    bool has_client = read_client_headers(&client, config->pid, spec->header_address);
    if (spec->build_id_size && spec->build_id_size <= READER_BUILD_ID_MAX) {
        memcpy(expected.build_id.bytes, spec->build_id, spec->build_id_size);
        expected.build_id.size = spec->build_id_size;
    } else if (has_client) {
        expected.build_id = client.build_id;
    }
    if (open_any_file(image, &expected, config->pid))
        return true;
    if (has_client) {
        client.path = image->path;
        *image = client;
    }
    image->build_id = expected.build_id;
    return has_client || expected.build_id.size;
}

void image_close(Image *image)
{
    if (image->elf)
        elf_end(image->elf);
    if (image->fd >= 0)
        close(image->fd);
    free(image->copy);
    free(image->path);
    *image = (Image){ .fd = -1 };
}
