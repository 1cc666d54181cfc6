// SPDX-License-Identifier: MIT
//
// The client's address space: what it has mapped, where new mappings go, and
// safe access to client memory from engine code.
//
//   0x0000_0001_0000 – 0x0000_5fff_ffff  client modules (ELF images), MAP_32BIT, vdso
//   0x0000_6000_0000 – 0x0000_6fff_ffff  code cache and lookup tables (the engine's)
//   0x0000_8000_0000 – 0x0fff_ffff_ffff  the rest of the client: brk, stacks, anonymous maps
//                                        (brk of programs linked to fixed addresses: behind them)
//   0x2000_0000_0000 …                   shadow (the tools')
//   0x55…, 0x7f…                         the engine, where the kernel put it
//
// The functions named sys_* are the client's system calls: they take raw
// arguments and return what the kernel would. They take the engine lock.
#ifndef MUNINN_ENGINE_ASPACE_ASPACE_H
#define MUNINN_ENGINE_ASPACE_ASPACE_H

#include "base/futex_lock.h"
#include "base/types.h"

#define CLIENT_LOW_START 0x10000ull
#define CACHE_START 0x60000000ull
#define CACHE_END 0x70000000ull
#define CLIENT_HIGH_START 0x80000000ull
#define CLIENT_END 0x100000000000ull // 16 TiB

typedef struct Mapping {
    GuestAddr start, end; // page aligned, [start, end)
    u32 prot;             // as the client asked: PROT_READ|WRITE|EXEC
    u32 flags;            // MAP_SHARED/PRIVATE/ANONYMOUS/GROWSDOWN/NORESERVE of the mmap
    u64 dev, inode;       // of the file, 0 when anonymous
    u64 offset;
    const char *name;     // path, "[heap]", "[stack]", "[vdso]", or NULL
} Mapping;

// One lock for the shape of the client's address space and for translation.
// Held for microseconds; execution in the cache never takes it.
extern Lock engine_lock;

void aspace_init(void);
// To be called in a forked child before every other function of this header: forgets the mappings
// that the child does not have because of MADV_DONTFORK.
void aspace_after_fork(void);

i64 sys_mmap(u64 addr, u64 len, u64 prot, u64 flags, u64 fd, u64 offset);
i64 sys_munmap(u64 addr, u64 len);
i64 sys_mprotect(u64 addr, u64 len, u64 prot);
i64 sys_pkey_mprotect(u64 addr, u64 len, u64 prot, u64 pkey);
i64 sys_mremap(u64 old_addr, u64 old_len, u64 new_len, u64 flags, u64 new_addr);
i64 sys_brk(u64 addr);
i64 sys_madvise(u64 addr, u64 len, u64 advice);
i64 sys_mlockall(u64 flags);
i64 sys_shmat(u64 shmid, u64 addr, u64 flags);
i64 sys_shmdt(u64 addr);
i64 sys_io_setup(u64 events, u64 context_address);
i64 sys_io_destroy(u64 context);
i64 sys_remap_file_pages(u64 addr, u64 size, u64 prot, u64 pgoff, u64 flags);

// Notes the name by which the client has opened a file, if there is no /proc to ask for it later.
void aspace_opened(int fd, GuestAddr path);
void aspace_opened_as(int fd, const char *path); // by the loader

// Whether any memory has a protection key other than 0; atomic.
extern bool aspace_has_keys;

// For the loader: as sys_mmap, but gives the mapping the name `name`.
i64 aspace_map_named(u64 addr, u64 len, u64 prot, u64 flags, int fd, u64 offset, const char *name);

// For the loader: the client's break begins at `start`, the page behind a program that is linked to
// fixed addresses.
void aspace_set_break(GuestAddr start);

// For the loader: records memory that the kernel mapped, as the client's.
void aspace_adopt(GuestAddr start, GuestAddr end, u32 prot, const char *name);

// The mapping that holds `addr`; NULL: there is none. The caller holds the engine lock.
const Mapping *aspace_find(GuestAddr addr);
const Mapping *aspace_next(const Mapping *after); // NULL → first; NULL at the end

// True until the first thread sets its base of fs. Small mappings without a file go low meanwhile:
// the dynamic linker maps the memory of the thread-local words, and emitted code reaches those
// without a register if they are low (translate/fs_base.c).
extern bool aspace_expects_words;

// --- hooks, set once at start and called with the engine lock held
// The client's code in [start, end) is gone or has changed: blocks made from it are stale.
extern void (*aspace_code_changed_hook)(GuestAddr start, GuestAddr end);
// aspace_code_mapped_hook: a file was mapped executable, or a mapping of a file has become
// executable (then `fd` is -1). aspace_unmapped_hook: [start, end) was unmapped or replaced.
extern void (*aspace_code_mapped_hook)(const Mapping *mapping, int fd);
extern void (*aspace_unmapped_hook)(GuestAddr start, GuestAddr end);
// mremap moves memory with its content. Called when the new mapping was reported by
// aspace_mapped_hook and the old one still exists.
extern void (*aspace_moved_hook)(GuestAddr from, GuestAddr to, u64 size);
// Memory of the client was mapped, or got another protection.
extern void (*aspace_mapped_hook)(const Mapping *mapping);

// To be called when no mapping is recorded at `addr`: lets the stack above grow down to it if it
// may, and its record with it. True if `addr` is mapped then. Causes no fault, so a signal handler
// may call it. Engine lock held.
bool aspace_grow(GuestAddr addr);
// Whether any stack may grow like that: set for good once the client has a mapping that grows, or a
// first stack without limit.
extern bool aspace_may_grow;
// To be called before the client sets its soft limit of the first stack.
void aspace_limit_stack(u64 limit);
// Whether the user has told the size of the first stack. Set before the first mapping.
extern bool aspace_stack_is_fixed;

// Whether the client may execute at `pc`; *ret_end is the end of the executable memory from there.
// Engine lock held.
bool aspace_executable(GuestAddr pc, GuestAddr *ret_end);

// No mapping is placed below this address unless the client names its place (--aspace-minaddr). Set
// before the first mapping.
extern GuestAddr aspace_lowest;
// The client may map nothing above this address. A tool with a shadow sets it when it starts.
extern GuestAddr aspace_end;
// How many bytes the client may map (RLIMIT_AS, RLIMIT_DATA); ~0: no limit. Atomic.
extern u64 aspace_limit_bytes, aspace_data_limit_bytes;

// --- code that the client may write (engine lock held for all)

// Write-protects the pages of [start, end), from which blocks are about to be made: a store to them
// must fault first.
void aspace_guard_code(GuestAddr start, GuestAddr end);

// To be called when a store to `addr` faulted. True when nothing but aspace_guard_code() had
// write-protected the page: now it is writable again and its blocks are retired.
// *ret_busy is true if the page is rewritten often.
bool aspace_unguard_code(GuestAddr addr, bool *ret_busy);

// True when the page is rewritten so often that guarding it costs more than
// checking the bytes of its blocks on entry.
bool aspace_code_is_busy(GuestAddr addr);

// To be called when a system call gave -EFAULT. True if there were guarded pages, which may have
// been the reason: all of them are writable again now, and the call is worth repeating.
bool aspace_unguard_all(void);

// Whether there may be guarded pages in the range; and how many guards were ever made. Neither
// needs the lock.
bool aspace_may_be_guarded(GuestAddr start, u64 len);
u64 aspace_guards_made(void);

// Makes the guarded pages of [start, start + len) writable for a system call that is
// going to write there; true if there were any. Costs nothing while nothing is guarded.
bool aspace_unguard_range(GuestAddr start, u64 len);

// To be called when a file was written: retires the blocks that were made from any mapping of it.
// True if there were such blocks. Engine lock held.
bool aspace_file_written(u64 dev, u64 inode);
// A count that grows when blocks are made from a file that had none. Needs no lock.
u64 aspace_code_files(void);

// --- access to client memory; false when any byte is not accessible. No lock
// needed; a fault inside is caught by signal/ through guest_access_fixup().
bool guest_read(GuestAddr addr, void *dst, size_t len);
// Whether a byte of the engine's own memory can be read; for tables that have holes.
bool engine_can_read(const void *address);
// Lifts the guards of the pages that it writes to. It takes the engine lock for that: the caller
// must not hold it.
bool guest_write(GuestAddr addr, const void *src, size_t len);
// Returns the length without the NUL, or -1 if the string is not readable or longer than max-1.
i64 guest_read_string(GuestAddr addr, char *dst, size_t max);
// To be called when an instruction of the engine's has faulted at host_pc. Returns where to resume
// if the instruction is that of an accessor, else 0.
u64 guest_access_fixup(u64 host_pc);
// For an asm in another file: if the instruction at label `at` faults, it resumes at `to`.
#define GUEST_FIXUP(at, to) \
    ".pushsection guest_fixups, \"a\"\n" \
    ".balign 4\n" \
    ".long " at " - ., " to " - .\n" \
    ".popsection\n"

// Walks the records of the mappings. Returns NULL, or a sentence that names what is wrong. With
// `ask_kernel` they are compared with /proc/self/maps too, if that can be read, for which a
// descriptor is open for a moment: no other thread may be there to notice. Engine lock held.
const char *aspace_validate(bool ask_kernel);

// Writes the text of /proc/self/maps as the client sees it; returns its length.
size_t aspace_maps_text(char *dst, size_t max);

#endif
