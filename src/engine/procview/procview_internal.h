// SPDX-License-Identifier: MIT
//
// What the files of procview/ share.
#ifndef MUNINN_ENGINE_PROCVIEW_PROCVIEW_INTERNAL_H
#define MUNINN_ENGINE_PROCVIEW_PROCVIEW_INTERNAL_H

#include "engine/procview/procview.h"

// What a path leads to, as far as we care.
typedef enum ProcFile {
    PROC_OTHER,  // the kernel's answer is the right one
    PROC_HIDDEN, // a descriptor of the engine: does not exist
    PROC_FD_DIR, // lists the descriptors
    PROC_EXE,
    PROC_MAPS,
    PROC_SMAPS,
    PROC_LIMITS,
    PROC_STATM, // these three of the process only, not of its threads
    PROC_STAT,
    PROC_STATUS,
    PROC_CMDLINE,
    PROC_ENVIRON,
    PROC_AUXV,
} ProcFile;

// An absolute path.
ProcFile names_classify(const char *path);

// A path argument of the client, relative to `dirfd`.
ProcFile names_classify_argument(int dirfd, GuestAddr path);

// Whether the open directory lists descriptors of this process.
bool names_is_descriptor_listing(int fd);

// Whether `text` starts with the number of a hidden descriptor, and nothing but a
// slash follows.
bool names_is_hidden_number(const char *text);

// Whether opening `file` gives something else than the kernel's file, and that: a
// descriptor at the client's next free number, or -errno.
bool files_is_ours(ProcFile file);
i64 files_open(ProcFile file, u64 open_flags);

typedef struct ProcText {
    char *data;
    u64 len, size; // size: what is mapped
} ProcText;

// The kernel's text of one of those three with the client's sizes; sizes.c. The target has
// 1 KiB more room than the kernel's text takes. All texts end with a newline.
void sizes_write(ProcFile file, const ProcText *maps, const ProcText *smaps,
                 const ProcText *kernels, ProcText *ret_text);

// The path behind which the kernel finds the client's program, whatever has become
// of its name. "" when there is no descriptor of it.
void files_exe_path(char *dst, size_t max);

#endif
