// SPDX-License-Identifier: MIT
//
// From addresses to names: functions, inlined frames, source lines and objects,
// for everything the client has mapped, read with elfutils when it is first
// asked for.
//
// Glossary
//   module  one ELF file (or vdso, or JIT area) as it was mapped at one time
//   place   (module, offset): what an address meant at a moment. It outlives the mapping
//   frame   one level of a stack as a person reads it; an address has several when
//           functions were inlined there
//
// What must stay true
//   Y1  Mapping and unmapping open no file: a run without findings reads no debug info.
//   Y2  Debug info is hostile input. What cannot be read costs names, never the run.
//   Y3  Strings in a Frame live as long as the Symbols they came from.
//   Y4  A name never comes from a file that is not the one that was mapped.
//
// Files are parsed in a process of its own (docs/design/symbol-reader.md), which is
// started by the first question. Not thread-safe: one thread at a time.
#ifndef MUNINN_MONITOR_SYMBOLS_SYMBOLS_H
#define MUNINN_MONITOR_SYMBOLS_SYMBOLS_H

#include "base/types.h"

typedef struct Symbols Symbols;

typedef struct SymbolsConfig {
    i32 pid;                        // of the client: perf-PID.map, /proc/PID/map_files, its memory
    const char *extra_debuginfo_path; // --extra-debuginfo-path, or NULL
    bool debuginfod;                // --enable-debuginfod=yes
    bool allow_mismatched;          // --allow-mismatched-debuginfo
    bool keep_debuginfo;            // --keep-debuginfo: names of code that is unmapped by now
    bool read_inline_info;          // --read-inline-info
    bool demangle;                  // --demangle
    bool only_code;                 // nobody will ask about variables
    // Told when debug info was given up, once for each file: one line without a newline. May be
    // NULL.
    void (*warn)(void *opaque, const char *line);
    void *warn_opaque;
} SymbolsConfig;

Symbols *symbols_new(const SymbolsConfig *config);
void symbols_free(Symbols *symbols);
// In a process forked from the one that asked questions: its reader is not ours to use.
// Another is started by the next question.
void symbols_after_fork(Symbols *symbols);
// Now and then: gives back the memory of a reader that nobody has asked for long.
void symbols_rest(Symbols *symbols);

// One file mapping of the client, as the kernel's maps show it.
typedef struct SymbolsMapping {
    u64 start, size;
    u64 file_offset;
    u64 device, inode;        // 0 when not known
    bool executable;
    const char *path;         // absolute; "[vdso]"; "" for anonymous code (a JIT)
    const u8 *build_id;       // of the mapped image, or NULL when it is not known
    size_t build_id_size;
} SymbolsMapping;

void symbols_map(Symbols *symbols, const SymbolsMapping *mapping);
void symbols_unmap(Symbols *symbols, u64 start, u64 size);
// The same, and where `unloading` is not 0 and names are to be kept, symbols_place_before() knows
// by that number what was there.
void symbols_unload(Symbols *symbols, u64 start, u64 size, u32 unloading);

// What an address means now. module 0: nothing that is known.
typedef struct CodePlace {
    u32 module;
    u64 offset; // in the module; the address itself when module is 0
} CodePlace;
CodePlace symbols_place(Symbols *symbols, u64 address);
// What it meant before that unloading. Where nothing is known of it, or it is 0: what it means now.
CodePlace symbols_place_before(Symbols *symbols, u64 address, u32 unloading);

typedef struct Frame {
    u64 pc;                // as it is shown
    const char *function;  // demangled, hashes and clone suffixes trimmed; NULL: not known
    const char *mangled;   // as the symbol table has it, with its version if there is one
                           // (fclose@@GLIBC_2.2.5); NULL for an inlined function without one
    const char *plain;     // of an inlined function: its name without scope and parameters, which
                           // is what the incumbent shows and its suppressions match; else NULL
    u64 function_offset;   // of the pc in its function
    const char *object;    // absolute path of the object; NULL: none
    u64 object_offset;     // of the pc in the object, as objdump counts
    const char *directory; // of the source file, NULL: not known
    const char *file;      // its last component, NULL: not known
    u32 line;              // 0: not known
    bool inlined;          // inlined into the next frame, which has the same pc
} Frame;

// The frames of one address, innermost first: at least one, at most max. A return
// address is looked up one byte back, in the call; its pc is shown one byte back too.
size_t symbols_frames(Symbols *symbols, CodePlace place, u64 pc, bool is_return_address,
                      Frame *ret_frames, size_t max);

// Asks what symbols_frames() is going to ask for, in the order of these calls: many questions on
// their way at once are many times as fast, and somebody else looks for the answers meanwhile.
typedef enum SymbolsAhead {
    SYMBOLS_ASKED,
    SYMBOLS_NO_QUESTION, // the answer is here, or is not the reader's to give
    SYMBOLS_TOO_MANY,    // take some answers first
} SymbolsAhead;
enum { SYMBOLS_AHEAD_MAX = 32 };
SymbolsAhead symbols_ask_ahead(Symbols *symbols, CodePlace place, bool is_return_address);
// They go together: now. And whether an answer has come, so that to ask takes no time.
void symbols_send_ahead(Symbols *symbols);
bool symbols_has_answer(const Symbols *symbols);

// A thread as it was, to find its stack by the unwind tables of the files: registers by DWARF's
// numbers of x86-64, and the words from an address on.
enum { UNWIND_RSP = 7, UNWIND_RETURN = 16, UNWIND_REGISTERS = 17 };
typedef struct UnwindStart {
    u64 registers[UNWIND_REGISTERS]; // [UNWIND_RETURN] is the pc
    u64 stack_address;               // of words[0]
    const u64 *words;
    size_t word_count;
} UnwindStart;

// The pcs of its frames, the innermost first: return addresses behind it, but for those with this
// bit, which were interrupted by a signal. At least one, at most max.
#define UNWIND_EXACT_PC (1ull << 63)
size_t symbols_unwind(Symbols *symbols, const UnwindStart *start, u64 *ret_pcs, size_t max);

// The name for a person of a mangled one: C++, Rust, D. Trimmed as in Frame. Lives
// as long as symbols.
const char *symbols_demangle(Symbols *symbols, const char *mangled);

// A variable of the client.
typedef struct DataName {
    const char *name;      // demangled
    const char *mangled;   // as the symbol table has it; NULL: only debug info knows it
    u64 offset;            // of the byte in the variable
    u64 size;              // of the variable; 0: not known
    const char *part;      // that has the byte, behind the name: `[2].items[5]`; NULL: not known
    u64 part_offset;       // of the byte in that part
    const char *object;    // absolute path of its object
    const char *directory; // of its declaration; NULL: not known
    const char *file;
    u32 line;              // 0: not known
} DataName;

// The global or static variable that has this byte now. False: none that is known.
bool symbols_data(Symbols *symbols, u64 address, DataName *ret_name);

// The local variable that has the byte at `cfa_distance` from the CFA (rsp before the call
// pushed the return address) of a frame that executes at the place. False: none that is known.
bool symbols_stack_data(Symbols *symbols, CodePlace place, bool is_return_address,
                        i64 cfa_distance, DataName *ret_name);

#endif
