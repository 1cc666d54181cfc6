// SPDX-License-Identifier: MIT
//
// What the files of loader/ share.
#ifndef MUNINN_ENGINE_LOADER_LOADER_INTERNAL_H
#define MUNINN_ENGINE_LOADER_LOADER_INTERNAL_H

#include "base/types.h"

#define PHDR_MAX 1170 // the kernel's limit: 64 KiB of program headers

// A mapped ELF file.
typedef struct Image {
    char path[4096]; // resolved
    u32 phdr_count;
    u64 bias;       // added to every address of the file
    u64 start, end; // the span of its PT_LOADs, biased
    u64 entry;      // biased
    u64 phdr;       // where the client sees its program headers, 0 if nowhere
    u64 code_start, code_end;
    bool exec_stack;
    bool is_fixed; // ET_EXEC
    char interp[4096]; // "" when it needs none
} Image;

// Where an ET_DYN image should go.
typedef enum ImageRole {
    IMAGE_PROGRAM,
    IMAGE_INTERPRETER,
} ImageRole;

bool image_load(const char *path, ImageRole role, Image *ret_image);

// Moves the vdso into the low area, or records it where it is. Returns its address, or 0 if there
// is no vdso.
u64 vdso_adopt(void);
// A copy of the image, before it is moved; NULL: no memory. And what takes its place then.
u8 *vdso_copy(u64 start, u64 size);
void vdso_stand_in(u64 start, u64 size, u8 *copy);

typedef struct StackRequest {
    const char *exe_name; // as given: AT_EXECFN
    int argc;
    char **argv;
    char **envp;
    const Image *program;
    u64 interp_base; // 0 without interpreter
    u64 vdso;        // 0 without vdso
} StackRequest;

typedef struct StackLayout {
    u64 sp;
    u64 arg_start, arg_end, env_start, env_end;
    u64 auxv, auxv_size;
} StackLayout;

bool stack_build(const StackRequest *request, StackLayout *ret_layout);

// Makes the kernel show the client's arguments, environment and auxv in /proc. If the
// kernel refuses, /proc is emulated for the client (procview/).
void identity_set(const StackRequest *request, const StackLayout *layout);

// Writes "muninn: SUBJECT: TEXT" to descriptor 2 and returns false.
bool load_error(const char *subject, const char *text);

// Reads at most `size` bytes of a file from its start; the count or -1.
i64 read_whole(const char *path, void *buffer, size_t size);

#endif
