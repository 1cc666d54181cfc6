// SPDX-License-Identifier: MIT
//
// The reader: everything that parses ELF, DWARF and mangled names. It runs in a
// process of its own (reader_process.h), so that a file that makes libdw crash, loop or
// eat memory costs that file's names and nothing else. docs/design/symbol-reader.md
//
// A request names a module by the number it was defined with. Requests and
// replies are flat bytes: a header, an array of items, then text that the items point
// into.
#ifndef MUNINN_MONITOR_SYMBOLS_READER_H
#define MUNINN_MONITOR_SYMBOLS_READER_H

#include "base/types.h"
#include "monitor/symbols/symbols.h"

#define READER_BUILD_ID_MAX 64
#define READER_FRAMES_MAX   64
#define READER_TEXT_MAX     (4 * MiB)

// How much of a module is read. A module that killed the reader is trusted less.
typedef enum ReaderTrust {
    READER_TRUST_ALL,     // symbol tables and debug info
    READER_TRUST_NAMES,   // symbol tables only
    READER_TRUST_NOTHING, // the file is not opened
} ReaderTrust;

// What is known of a module before any file is opened.
typedef struct ModuleSpec {
    const char *path;
    u64 inode;          // 0: not known
    u64 size_bytes;     // of the file when it was mapped; 0: not known
    u64 mtime_ns;       // likewise
    u64 header_address; // where the client has the ELF header now; 0: nowhere
    u8 build_id[READER_BUILD_ID_MAX];
    u32 build_id_size; // 0: not known
    u32 trust;         // ReaderTrust
} ModuleSpec;

typedef enum ReaderOp {
    READER_DEFINE,    // payload: ModuleSpec, path. No reply
    READER_FRAMES,    // module, offset in the file
    READER_DEMANGLE,  // payload: the mangled name
    READER_EXTENT,    // module, offset in the file → the vaddr of it, and of the image's ends
    READER_DATA,      // module, vaddr
    READER_STACK,     // module, offset in the file of the pc, distance from the CFA
    READER_UNWIND,    // module, offset in the file of the pc → items: line is a register's number,
                      // offset what is added to it for the CFA (the first), or where the
                      // register is saved, from the CFA; inlined: the kernel's frame of a signal
} ReaderOp;

typedef struct ReaderRequest {
    u32 op;
    u32 module;
    u64 offset;
    i64 distance;
    u32 payload_bytes;
    u32 reserved;
} ReaderRequest;

// One frame or one variable. Text is given as 1 + its offset in the reply's text; 0: none.
typedef struct ReaderItem {
    u32 name, mangled, plain, part, directory, file;
    u32 line;
    u32 inlined;
    u64 offset; // in the function or variable
    u64 size;   // of the variable
    u64 part_offset;
} ReaderItem;

typedef struct ReaderReply {
    u32 item_count;
    u32 text_bytes;
    u64 vaddr; // of what was asked for
    u64 vaddr_low, vaddr_high;
    u32 warning; // as in ReaderItem: something the user should know, or 0
    u32 found;   // the module has that offset
} ReaderReply;

// A reply being written.
typedef struct ReplyText {
    ReaderReply reply;
    ReaderItem items[READER_FRAMES_MAX];
    char *text;
    size_t capacity;
} ReplyText;

u32 reply_add_text(ReplyText *reply, const char *text, size_t length);
u32 reply_add_string(ReplyText *reply, const char *string); // NULL gives 0

typedef struct Reader Reader;

Reader *reader_new(const SymbolsConfig *config);
void reader_free(Reader *reader);
void reader_define(Reader *reader, u32 module, const ModuleSpec *spec);

// Answers every operation except READER_DEFINE.
void reader_answer(Reader *reader, const ReaderRequest *request, const char *payload,
                   ReplyText *reply);

#endif
