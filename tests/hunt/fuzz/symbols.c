// SPDX-License-Identifier: MIT
//
// The reader of symbols and debug info, without the process around it: ELF, DWARF, mangled names.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "monitor/symbols/reader.h"

enum { MODULE = 1, STEPS = 24, SPAN = 0x1400 };

static void ask(Reader *reader, u32 op, u64 offset, i64 distance)
{
    static ReplyText reply;
    ReaderRequest request = {.op = op, .module = MODULE, .offset = offset, .distance = distance};

    reply.reply = (ReaderReply){0};
    reader_answer(reader, &request, NULL, &reply);
    FUZZ_CHECK(reply.reply.item_count <= READER_FRAMES_MAX);
    FUZZ_CHECK(reply.reply.text_bytes <= READER_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    SymbolsConfig config = {.keep_debuginfo = true, .read_inline_info = true, .demangle = true};
    Reader *reader = reader_new(&config);
    ModuleSpec spec = {.path = fuzz_file(data, size), .trust = READER_TRUST_ALL};

    reader_define(reader, MODULE, &spec);
    for (u64 at = 0; at < SPAN; at += SPAN / STEPS)
        ask(reader, READER_FRAMES, at, 0);
    ask(reader, READER_EXTENT, 0x1000, 0);
    ask(reader, READER_DATA, 0x4010, 0);
    ask(reader, READER_STACK, 0x1140, -32);
    reader_free(reader);
    return 0;
}
