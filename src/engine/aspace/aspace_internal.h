// SPDX-License-Identifier: MIT
//
// What the files of aspace/ share: the questions "may the client have this
// range" and "where does a new mapping go", and the guards on pages that hold
// translated code. Everything here needs the engine lock unless it says otherwise.
#ifndef MUNINN_ENGINE_ASPACE_ASPACE_INTERNAL_H
#define MUNINN_ENGINE_ASPACE_ASPACE_INTERNAL_H

#include <sys/mman.h>

#include "base/raw_syscall.h"
#include "engine/aspace/mapping_tree.h"

// Where the client's break begins, unless it lies behind the program; other mappings stay away from
// it up to BRK_LIMIT.
#define BRK_START 0x010000000000ull
#define BRK_LIMIT 0x020000000000ull
// Automatic placement in the high area goes down from here.
#define HIGH_TOP  0x0ff000000000ull
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define USER_END  0x7ffffffff000ull
#define HUGE_PAGE (2 * MiB)

#define DEV_SHMEM 1ull // the kernel's internal tmpfs: shared anonymous memory, System V segments

// The protection that the kernel gets for the client's `prot`: no memory of the client's is
// executable for the processor.
u64 host_prot(u64 prot);
// mprotect, or pkey_mprotect if `pkey` is not -1.
i64 host_protect(GuestAddr start, u64 len, u64 prot, i32 pkey);

// ---------------------------------------------------------------- range.c

// Whether any byte of [start, end) belongs to the engine, as far as the records say.
bool range_hits_engine(GuestAddr start, GuestAddr end);
// To be called when recorded memory at or above CLIENT_END has changed: guest_read() must know.
void range_publish_far(void);
// Whether engine code may touch [addr, addr + len) for the client. Takes no lock.
bool range_is_client(GuestAddr addr, u64 len);
// How many of the `len` bytes from `addr` on are the client's. Takes no lock.
u64 range_client_bytes(GuestAddr addr, u64 len);

// Lets the records of growing stacks follow what the kernel has grown.
void range_sync_growing_stacks(void);
// To be called when an mmap over [start, end) has failed: the kernel may have unmapped the old
// mapping all the same. Forgets the part that is gone.
void range_drop_lost(GuestAddr start, GuestAddr end);
// Whether the kernel shows a [vsyscall] page.
extern bool range_has_vsyscall;
// Calls fn for each line of /proc/thread-self/maps, cut after the protection. False: it cannot be
// read. /proc/self/maps is empty once the first thread has ended.
bool range_read_maps(void (*fn)(const char *line, void *arg), void *arg);
// Finds engine memory inside the client's range and records it as foreign.
void range_find_foreign(void);

// ---------------------------------------------------------------- growth.c

// Whether the mapping grows downwards or is the first stack.
bool growth_is_stack(const MapNode *n);

// ---------------------------------------------------------------- placement.c

typedef enum PlaceKind {
    PLACE_HIGH,
    PLACE_LOW_IF_ROOM, // code wants to be near the cache
    PLACE_LOW_ONLY,    // MAP_32BIT
} PlaceKind;

// Returns the start of free room for `len` bytes, or 0.
GuestAddr place_find(PlaceKind kind, u64 len, u64 align);
// If the break's start is low, keeps the room above it free for the break as long as possible.
void placement_keep_low_room(GuestAddr start);
// Whether a mapping can be placed exactly at the client's hint.
bool place_hint_is_free(GuestAddr addr, u64 len);

// ---------------------------------------------------------------- opened_names.c

// Finds the name by which the client has opened this file, if there is no /proc to ask.
bool opened_name(u64 dev, u64 inode, char *path, size_t path_size);

// ---------------------------------------------------------------- account.c

// Whether the client's limits allow `bytes` more, as the kernel's may_expand_vm().
bool account_may_expand(u64 bytes, u64 prot, u64 flags);
// The same for an mmap, which may replace what is there.
bool account_may_map(GuestAddr start, u64 len, u64 prot, u64 flags);
// The same for a change of protection.
bool account_may_become(u64 bytes, u64 prot, u64 old_prot, u64 flags);

// ---------------------------------------------------------------- code_guard.c

// Retires the blocks made from the executable parts of [start, end).
void guard_retire_code(GuestAddr start, GuestAddr end);
// Forgets the guards of [start, end), which has got its full host protection by other means.
void guard_forget(GuestAddr start, GuestAddr end);
// The same for memory that keeps its content: the counts of faults stay.
void guard_unmark(GuestAddr start, GuestAddr end);
// Makes the guarded pages of [start, end) writable again and retires their blocks.
void guard_lift(GuestAddr start, GuestAddr end);
// Calls aspace_code_changed_hook.
void code_changed(GuestAddr start, GuestAddr end);
// To be called when a mapping has become writable: retires the blocks made from other, executable
// mappings of the same memory.
void guard_note_writable(GuestAddr start, GuestAddr end);
// To be called when a real mprotect() has made [start, end) writable: retires the blocks of its
// guarded pages.
void guard_release(GuestAddr start, GuestAddr end);

#endif
