// SPDX-License-Identifier: MIT
//
// memtrace: every access to memory, in a file: thread, instruction, R or W, address, size. Shows
// buffers: blocks write the accesses down, and the tool gets thousands of them at once.
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

MUNINN_TOOL("memtrace", "writes every memory access to a file")

enum { BATCH = 16384, SITES_MAX = 1 << 24 };

static MuninnBuffer *buffer;
static MuninnAddress *sites; // the instruction of each tag
static uint32_t site_count;
static const char *path = "memtrace.%p";
static int fd;

static void write_all(const char *text, size_t size)
{
    for (ssize_t n; size && (n = write(fd, text, size)) > 0; size -= (size_t)n)
        text += n;
}

// Threads call this in parallel. Each writes whole lines, to a file that appends.
static void on_records(MuninnThread *thread, const MuninnRecord *records, size_t count, void *data)
{
    enum { ROOM = 65536, LINE_MAX = 96 };
    char *text = malloc(ROOM);
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        const MuninnRecord *r = &records[i];
        length += (size_t)snprintf(text + length, LINE_MAX, "%u %#lx %c %#lx %u\n",
                                   muninn_thread_number(thread), sites[r->tag],
                                   r->writes ? 'W' : 'R', r->address, r->size);
        if (length > ROOM - LINE_MAX || i + 1 == count) {
            write_all(text, length);
            length = 0;
        }
    }
    free(text);
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        size_t count = muninn_insn_accesses(insn, NULL, 0);
        if (!count || site_count == SITES_MAX)
            continue;
        sites[site_count] = muninn_insn_address(insn);
        for (size_t j = 0; j < count; j++)
            muninn_record(insn, j, buffer, site_count); // false: a gather, which has no one address
        site_count++;
    }
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    close(fd);
    fd = muninn_open(path);
}

int muninn_tool_start(void)
{
    muninn_option_text("out", &path, "The file; %p in its name becomes the process id.");
    sites = calloc(SITES_MAX, sizeof(*sites)); // touched where it is used only
    fd = muninn_open(path);
    if (!sites || fd < 0) {
        muninn_log("cannot write %s", path);
        return 1;
    }
    buffer = muninn_buffer(BATCH, on_records, NULL);
    muninn_on_block(on_block, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    return 0;
}
