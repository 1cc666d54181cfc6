// SPDX-License-Identifier: MIT
//
// Files whose symbols have been looked at in vain: none has a name that the tool or a wrapper of
// the program's could want. Programs map the same object hundreds of times (nm loads its plugin
// anew for each member of an archive), and its symbols are the same each time.
//
// A file is known by what changes when its content does. A file that was changed within the last
// moments may be changed again without a change of its times, so that it is not remembered.
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/map.h"
#include "base/raw_syscall.h"
#include "base/vec.h"
#include "engine/redirect/redirect_internal.h"

enum { SETTLED_AFTER_S = 2 };

static Vec files;    // FileKey; these two: engine lock
static Map by_hash;  // of a key → its place in `files`

static u64 hash_key(const FileKey *key)
{
    const u64 *words = (const u64 *)(const void *)key;
    u64 h = 0;
    for (size_t i = 0; i < sizeof *key / sizeof *words; i++)
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull ^ h >> 29;
    return h;
}

bool known_files_key(int fd, const Mapping *mapping, FileKey *ret_key)
{
    struct stat st;
    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&st) != 0 || !S_ISREG(st.st_mode))
        return false;
    u64 name = 0; // a pattern for objects may be about it
    for (const char *c = mapping->name; *c; c++)
        name = name * 33 + (u8)*c;
    *ret_key = (FileKey){
        .dev = st.st_dev,
        .inode = st.st_ino,
        .size = (u64)st.st_size,
        .changed_s = (u64)st.st_ctim.tv_sec,
        .changed_ns = (u64)st.st_ctim.tv_nsec,
        .modified_s = (u64)st.st_mtim.tv_sec,
        .modified_ns = (u64)st.st_mtim.tv_nsec,
        .offset = mapping->offset,
        .length = mapping->end - mapping->start,
        .name = name,
    };
    return true;
}

bool known_files_have(const FileKey *key)
{
    u64 at;
    return map_get(&by_hash, hash_key(key), &at) &&
           memcmp(vec_at(&files, at), key, sizeof *key) == 0;
}

void known_files_add(const FileKey *key)
{
    struct timespec now;
    raw_syscall2(SYS_clock_gettime, CLOCK_REALTIME, (u64)&now);
    if (files.element_bytes == 0)
        vec_init(&files, sizeof *key);
    // Without memory it is looked at again.
    if ((u64)now.tv_sec >= key->changed_s + SETTLED_AFTER_S && vec_push(&files, key))
        map_put(&by_hash, hash_key(key), files.count - 1);
}
