// SPDX-License-Identifier: MIT
//
// The order of things: program, interpreter, vdso, stack, name.
#include "engine/loader/loader.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/loader/loader_internal.h"

static Image program;
static Image interpreter;

bool load_error(const char *subject, const char *text)
{
    char line[4096 + 256];
    size_t len = text_format(line, sizeof line, "muninn: %s: %s\n", subject, text);

    return write(2, line, len) < 0 ? false : false;
}

i64 read_whole(const char *path, void *buffer, size_t size)
{
    size_t len = 0;
    ssize_t got;

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (len < size && (got = read(fd, (u8 *)buffer + len, size - len)) > 0)
        len += (size_t)got;
    close(fd);
    return (i64)len;
}

bool loader_start(const char *exe_path, int argc, char **argv, char **envp, u64 *ret_entry,
                  u64 *ret_sp)
{
    StackLayout layout;

    if (!image_load(exe_path, IMAGE_PROGRAM, &program))
        return false;
    if (program.is_fixed)
        aspace_set_break(program.end);
    bool has_interp = program.interp[0] != 0;
    if (has_interp && !image_load(program.interp, IMAGE_INTERPRETER, &interpreter))
        return false;
    StackRequest request = {
        .exe_name = exe_path,
        .argc = argc,
        .argv = argv,
        .envp = envp,
        .program = &program,
        .interp_base = has_interp ? interpreter.bias : 0,
        .vdso = vdso_adopt(),
    };
    if (!stack_build(&request, &layout))
        return false;
    identity_set(&request, &layout);
    *ret_entry = has_interp ? interpreter.entry : program.entry;
    *ret_sp = layout.sp;
    return true;
}

const char *loader_exe_path(void)
{
    return program.path;
}
