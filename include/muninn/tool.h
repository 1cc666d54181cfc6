// SPDX-License-Identifier: MIT
//
// The interface of Muninn for tools that are built outside of its tree:
//
//     cc -shared -fPIC -o hello.so hello.c $(pkg-config --cflags muninn-tool)
//     muninn --tool=./hello.so [the tool's options] program [arguments]
//
// A tool is a shared object. It uses MUNINN_TOOL() once and defines muninn_tool_start(), which
// says what the tool wants to be told of. This one counts the instructions of any program:
//
//     #include <muninn/tool.h>
//     MUNINN_TOOL("hello", "counts instructions")
//
//     static MuninnCounter instructions;
//
//     static void on_block(MuninnBlock *block, void *data)
//     {
//         for (size_t i = 0; i < muninn_block_count(block); i++)
//             muninn_count(muninn_block_insn(block, i), instructions, 1);
//     }
//
//     static void on_end(void *data)
//     {
//         muninn_log("%lu instructions", muninn_counter_total(instructions));
//     }
//
//     int muninn_tool_start(void)
//     {
//         instructions = muninn_counter();
//         muninn_on_block(on_block, NULL);
//         muninn_on_end(on_end, NULL);
//         return 0;
//     }
//
// The program being watched is called the client. It runs in the same process and never as it is:
// the engine translates it block by block. A block is a run of instructions with one entrance; it
// may have several exits. A tool sees each block once, when it is translated, and decides there
// what is to happen each time that it runs.
//
// When functions may be called
//   [start]   in muninn_tool_start() only
//   [block]   in a block callback only, on the handles that it got
//   [any]     in every callback, and in muninn_tool_start() where that makes sense
//   [outside] in every callback but those of blocks, those that blocks call, and those of
//             allocations
//
// What a callback may do
//   All callbacks may use libc, C++ with its exceptions (which must not leave the callback), vector
//   registers and x87, and may allocate memory. They see the libc of the engine, not that of the
//   client: what the tool allocates or prints is no business of the client's.
//   A callback that a block calls ("call" below), or that an allocation does, runs in the thread
//   concerned, at that instruction, in parallel with other threads. It may take locks of its own
//   and must give them back before it returns. It must not leave by longjmp. No signal handler of
//   the client's runs meanwhile, and no fork happens while any thread is in a callback, so a child
//   never sees a lock that is held. A block callback runs while no other thread translates. It must
//   not wait for another thread. Other callbacks run where the client makes the event happen. A
//   call declared MUNINN_CALL_HOT is cheaper by the cost of saving the vector registers, and may do
//   less: it and all that it calls are compiled with -mgeneral-regs-only, and it calls no libc.
#ifndef MUNINN_TOOL_H
#define MUNINN_TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this interface. A tool built for one version is refused by an engine that has
// another. What is added without harm to older tools raises the minor version alone.
#define MUNINN_TOOL_API 1
#define MUNINN_TOOL_API_MINOR 0

typedef struct MuninnTool {
    uint32_t api, api_minor;
    const char *name;    // begins each of its lines
    const char *summary; // of --help
} MuninnTool;

#define MUNINN_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
#define MUNINN_TOOL(name, summary)                                                                 \
    extern "C" MUNINN_EXPORT const MuninnTool muninn_tool;                                         \
    const MuninnTool muninn_tool = {MUNINN_TOOL_API, MUNINN_TOOL_API_MINOR, name, summary};
#else
#define MUNINN_TOOL(name, summary)                                                                 \
    MUNINN_EXPORT const MuninnTool muninn_tool = {MUNINN_TOOL_API, MUNINN_TOOL_API_MINOR, name,    \
                                                  summary};
#endif

// Defined by the tool: called once, before the client exists. Another result than 0 ends the run;
// the tool has said why with muninn_log().
MUNINN_EXPORT int muninn_tool_start(void);

// Handles. A block and its instructions are valid until the block callback returns; a thread until
// its end has been told.
typedef struct MuninnBlock MuninnBlock;
typedef struct MuninnInsn MuninnInsn;
typedef struct MuninnThread MuninnThread;

typedef uint64_t MuninnAddress; // of the client

// ------------------------------------------------------------------------------- options [start]
// An option of the tool, "--name=value" before the program's name. The variable has its default
// when the function is called and the user's value when it returns. `help` is a sentence. What the
// user gave and no function has asked for is refused when muninn_tool_start() has returned. Names
// of options that Muninn itself has (--stats, --verbose) are refused.

void muninn_option_bool(const char *name, bool *value, const char *help);       // yes or no
void muninn_option_number(const char *name, uint64_t *value, const char *help); // decimal or 0x
void muninn_option_text(const char *name, const char **value, const char *help);

// ------------------------------------------------------------------------ what is wanted [start]

typedef enum MuninnNeed {
    // Calling contexts: muninn_context().
    MUNINN_NEED_CONTEXTS = 1,
    // Names of functions and lines: muninn_name(). Starts the monitor beside the program.
    MUNINN_NEED_NAMES = 2,
} MuninnNeed;
void muninn_need(unsigned needs);

typedef void MuninnBlockFn(MuninnBlock *block, void *data);
typedef void MuninnThreadFn(MuninnThread *thread, void *data);
typedef void MuninnEndFn(void *data);

// A block is being translated. The same instructions may be translated several times, and belong to
// several blocks.
void muninn_on_block(MuninnBlockFn *fn, void *data);
// A thread is about to run its first instruction; and has run its last one. Those that live when
// the process ends have no end of their own.
void muninn_on_thread_start(MuninnThreadFn *fn, void *data);
void muninn_on_thread_end(MuninnThreadFn *fn, void *data);
// In the child of a fork, which has this thread alone. Counters and words keep their values: a tool
// that wants the child's own sets them back with muninn_counters_reset().
void muninn_on_fork_child(MuninnThreadFn *fn, void *data);
// The process ends, by the client's will or by a signal. Other threads stand still.
void muninn_on_end(MuninnEndFn *fn, void *data);

typedef struct MuninnSyscall {
    uint64_t number;
    uint64_t args[6];
    int64_t result; // after the call; a negative number above -4096 is an error
} MuninnSyscall;
typedef void MuninnSyscallFn(MuninnThread *thread, const MuninnSyscall *call, void *data);
void muninn_on_syscall_before(MuninnSyscallFn *fn, void *data);
void muninn_on_syscall_after(MuninnSyscallFn *fn, void *data);
// [any] "read", or "sys_1000" of a number that is not known; it may be written to `text`.
const char *muninn_syscall_name(uint64_t number, char *text, size_t size);

// A signal is about to be delivered to a handler of the client's.
typedef void MuninnSignalFn(MuninnThread *thread, int signal, void *data);
void muninn_on_signal(MuninnSignalFn *fn, void *data);

// Memory of the client's appears or has another protection, and goes. `prot` is of PROT_READ,
// PROT_WRITE and PROT_EXEC. Called like a block callback: it must not wait for another thread.
typedef void MuninnMapFn(MuninnAddress start, MuninnAddress end, int prot, void *data);
typedef void MuninnUnmapFn(MuninnAddress start, MuninnAddress end, void *data);
void muninn_on_map(MuninnMapFn *fn, void *data);
void muninn_on_unmap(MuninnUnmapFn *fn, void *data);

// A command that the user gives with `muninn ctl PID COMMAND`, in a thread of the client's between
// two blocks. The callback answers with muninn_answer(). False: it is not one of the tool's.
typedef bool MuninnCommandFn(MuninnThread *thread, char *command, void *data);
void muninn_on_command(MuninnCommandFn *fn, const char *help, void *data);
void muninn_answer(MuninnThread *thread, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// A client request (include/muninn/client.h) that no part of the engine knows. args[0] is its
// number, *result its default. False: the tool does not know it either.
typedef bool MuninnRequestFn(MuninnThread *thread, const uint64_t args[6], uint64_t *result,
                             void *data);
void muninn_on_request(MuninnRequestFn *fn, void *data);

// ----------------------------------------------------------------------- functions by name [start]

typedef struct MuninnCall {
    MuninnAddress function;       // where it begins
    MuninnAddress return_address;
    uint64_t args[6];             // integers and pointers; `before` and `replace` may change them
    uint64_t result;              // of `after`, which may change it
    uint64_t state;               // 0 in `before`; what that leaves here, `after` and `left` find
    bool run_original;            // `replace` sets this to let the function run after all
} MuninnCall;
typedef void MuninnCallFn(MuninnThread *thread, MuninnCall *call, void *data);
typedef uint64_t MuninnReplaceFn(MuninnThread *thread, MuninnCall *call, void *data);

typedef struct MuninnWrap {
    MuninnCallFn *before; // NULL: nothing
    MuninnCallFn *after;  // it has returned
    // It was left in another way: by longjmp, an exception, or the end of its thread. Told at the
    // latest when the place of its frame is used again, and before `after` of a call that it was
    // made by; if that is not on the thread's first stack, it may be told later than this `after`.
    MuninnCallFn *left;
    void *data;
} MuninnWrap;

// Wraps, or replaces, the functions whose symbols match `name`, in objects whose soname (file name
// if there is none) matches `object`; in both * stands for any text and ? for any character.
// NULL: any object. C++ names are the mangled ones. Where several match one function all are
// called: `before` and `replace` in the order in which they were asked for, until a replacement
// does not decline; `after` and `left` in the opposite order.
void muninn_wrap(const char *object, const char *name, const MuninnWrap *wrap);
void muninn_replace(const char *object, const char *name, MuninnReplaceFn *fn, void *data);

// [outside] Calls a function of the client's, with up to six integers. The caller must hold no
// lock: other threads may fork meanwhile, and callbacks be called. False: the client's stack has no
// room.
bool muninn_call_client(MuninnThread *thread, MuninnAddress function, const uint64_t *args,
                        unsigned count, uint64_t *result);

typedef enum MuninnAllocationKind {
    MUNINN_ALLOCATED,
    MUNINN_FREED,
    MUNINN_RESIZED,
} MuninnAllocationKind;
typedef struct MuninnAllocation {
    MuninnAllocationKind kind;
    MuninnAddress address; // of the block; of the new one where it was resized
    MuninnAddress old;     // where it was before it was resized
    uint64_t size;         // that was asked for; 0 when freed
    MuninnAddress pc;      // where the function was called from, in the client's terms
} MuninnAllocation;
// The client allocates or frees: malloc and its family, new and delete, in whatever library or
// program. One event for a call, however many of these functions call each other.
typedef void MuninnAllocationFn(MuninnThread *thread, const MuninnAllocation *event, void *data);
void muninn_on_allocation(MuninnAllocationFn *fn, void *data);

// --------------------------------------------------------------------- looking at blocks [block]

MuninnAddress muninn_block_address(const MuninnBlock *block);
size_t muninn_block_count(const MuninnBlock *block); // of instructions
MuninnInsn *muninn_block_insn(MuninnBlock *block, size_t index);

MuninnAddress muninn_insn_address(const MuninnInsn *insn);
size_t muninn_insn_size(const MuninnInsn *insn);
const uint8_t *muninn_insn_bytes(const MuninnInsn *insn);
// "mov", in lower case; and the whole of it in Intel's notation, written to `text`.
const char *muninn_insn_mnemonic(const MuninnInsn *insn);
const char *muninn_insn_text(const MuninnInsn *insn, char *text, size_t size);

typedef enum MuninnClass {
    MUNINN_CLASS_OTHER,
    MUNINN_CLASS_BRANCH,          // conditional
    MUNINN_CLASS_JUMP,
    MUNINN_CLASS_JUMP_INDIRECT,
    MUNINN_CLASS_CALL,
    MUNINN_CLASS_CALL_INDIRECT,
    MUNINN_CLASS_RETURN,
    MUNINN_CLASS_SYSCALL,
} MuninnClass;
MuninnClass muninn_insn_class(const MuninnInsn *insn);
// Of a direct branch, jump or call: where it leads. 0: of others.
MuninnAddress muninn_insn_target(const MuninnInsn *insn);
// A word for the part of the instruction set that it belongs to: "I86" for what the first processor
// had, "SSE2", "AVX512F_512".
const char *muninn_insn_extension(const MuninnInsn *insn);

typedef enum MuninnRegister {
    MUNINN_RAX, MUNINN_RCX, MUNINN_RDX, MUNINN_RBX, MUNINN_RSP, MUNINN_RBP, MUNINN_RSI, MUNINN_RDI,
    MUNINN_R8, MUNINN_R9, MUNINN_R10, MUNINN_R11, MUNINN_R12, MUNINN_R13, MUNINN_R14, MUNINN_R15,
    MUNINN_GENERAL_REGISTERS,
    MUNINN_FLAGS = MUNINN_GENERAL_REGISTERS,
} MuninnRegister;

// Bit r: general register r is read or used in an address; is written. Bit MUNINN_FLAGS: the same
// of the status flags, of which it may be a part.
uint32_t muninn_insn_reads(const MuninnInsn *insn);
uint32_t muninn_insn_writes(const MuninnInsn *insn);

typedef struct MuninnAccess {
    uint32_t size; // bytes; 0: it is known only when it runs
    bool reads, writes;
    bool has_address; // false: scattered over several, as of gathers
    bool is_stack;    // push, pop, call, return
    bool is_repeated; // of a string instruction with a rep prefix: the first element of several
} MuninnAccess;
// The accesses to memory of an instruction, explicit and implicit ones. Returns how many there are;
// writes at most `max`.
size_t muninn_insn_accesses(const MuninnInsn *insn, MuninnAccess *accesses, size_t max);
enum { MUNINN_ACCESSES_MAX = 8 };

// ------------------------------------------------------------------------------------- counters
// A counter is a number of 64 bits for each thread, to which blocks add constants. The additions
// of a straight run of instructions cost one increment together, however many counters they are
// for, and are exact also where a run is left in the middle by a signal or a fault: an instruction
// that has not been completed has not been counted.

typedef uint32_t MuninnCounter;
enum { MUNINN_COUNTERS_MAX = 1 << 21 };

MuninnCounter muninn_counter(void); // [any] a new one
// [block] The counter grows by `amount` when the instruction is executed.
void muninn_count(MuninnInsn *insn, MuninnCounter counter, uint32_t amount);
// [block] The counter grows when the conditional branch is not taken. False: it is no such branch.
bool muninn_count_not_taken(MuninnInsn *insn, MuninnCounter counter, uint32_t amount);
// [any] The sum over all threads, ended ones included; and of one thread. Threads that run may have
// gone on meanwhile.
uint64_t muninn_counter_total(MuninnCounter counter);
uint64_t muninn_counter_of(MuninnThread *thread, MuninnCounter counter);
// All totals at once: much cheaper than one after the other. `totals` has room for `count` counters
// from the first one on.
void muninn_counter_totals(uint64_t *totals, size_t count);
void muninn_counters_reset(void); // [outside] all become 0, in all threads

// ----------------------------------------------------------------------------------------- words
// A word is a number of 64 bits for each thread that blocks read and change at once, by themselves.

typedef uint32_t MuninnWord;
enum { MUNINN_WORDS_MAX = 16 };
MuninnWord muninn_word(void); // [start]

typedef enum MuninnOperation { MUNINN_ADD, MUNINN_STORE, MUNINN_MAX, MUNINN_MIN } MuninnOperation;
typedef enum MuninnSource {
    MUNINN_CONSTANT, // value, of 32 bits with a sign
    MUNINN_REGISTER, // the general register `value`
    MUNINN_ADDRESS,  // of the access number `value` of the instruction
} MuninnSource;
// [block] word := word OPERATION source, before the instruction. False: that access has no address.
bool muninn_update(MuninnInsn *insn, MuninnWord word, MuninnOperation operation,
                   MuninnSource source, int64_t value);
uint64_t *muninn_word_of(MuninnThread *thread, MuninnWord word); // [any]

// ----------------------------------------------------------------------------------------- calls
// What is inserted before an instruction happens each time that the instruction is begun: also when
// it faults, and twice when a signal is delivered before its fault and it is begun again.

// `value` depends on what was asked for: 0, an address, or whether a branch is taken.
typedef void MuninnInsnFn(MuninnThread *thread, void *data, uint64_t value);

typedef enum MuninnCallFlags {
    // The callback reads general registers or the flags: muninn_register().
    MUNINN_CALL_READS_REGISTERS = 1,
    // It also changes some: muninn_set_register(). Not of calls after an instruction.
    MUNINN_CALL_WRITES_REGISTERS = 2,
    // See "What a callback may do" above.
    MUNINN_CALL_HOT = 4,
    // After the instruction instead of before it. Of instructions that may go elsewhere (class
    // other than MUNINN_CLASS_OTHER): when they do not.
    MUNINN_CALL_AFTER = 8,
} MuninnCallFlags;

// [block] Calls fn(thread, data, 0) each time.
void muninn_call(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags);

// [block] The same only if `word` compares so with `constant`, which is tested in the block. Words
// compare as unsigned numbers.
typedef enum MuninnCondition {
    MUNINN_EQUAL, MUNINN_NOT_EQUAL, MUNINN_BELOW, MUNINN_NOT_BELOW
} MuninnCondition;
void muninn_call_if(MuninnInsn *insn, MuninnWord word, MuninnCondition condition, int32_t constant,
                    MuninnInsnFn *fn, void *data, unsigned flags);

// [block] Calls fn(thread, data, address) before the instruction makes its access number `access`;
// with MUNINN_CALL_AFTER when it has made it. False: the access has no address.
bool muninn_call_access(MuninnInsn *insn, size_t access, MuninnInsnFn *fn, void *data,
                        unsigned flags);

// [block] Calls fn(thread, data, taken) before a conditional branch. False: it is none that can be
// asked (loop and jrcxz).
bool muninn_call_branch(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags);

// [block] Calls fn(thread, data, target) before an indirect jump, indirect call or return goes
// there. False: it is none of these.
bool muninn_call_target(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags);

// --------------------------------------------------------------------------------------- buffers
// What blocks write down of memory accesses, many at a time.

typedef struct MuninnRecord {
    MuninnAddress address;
    uint32_t tag;   // the tool's, for instance a number for the instruction
    uint16_t size;  // 0: it varies
    uint8_t writes; // 1: the access writes, or reads and writes
    uint8_t unused;
} MuninnRecord;

typedef struct MuninnBuffer MuninnBuffer;
// The callback gets records in the order in which the thread made them: when its buffer is full,
// and when it ends. It runs as a call of a block does.
typedef void MuninnBufferFn(MuninnThread *thread, const MuninnRecord *records, size_t count,
                            void *data);
MuninnBuffer *muninn_buffer(size_t records, MuninnBufferFn *fn, void *data); // [start]
// [block] False: the access has no address.
bool muninn_record(MuninnInsn *insn, size_t access, MuninnBuffer *buffer, uint32_t tag);

// ----------------------------------------------------------------------------- threads and memory

uint32_t muninn_thread_number(const MuninnThread *thread); // [any] from 1, never used twice
int muninn_thread_id(const MuninnThread *thread);          // [any] the kernel's
void *muninn_thread_data(const MuninnThread *thread);      // [any] the tool's own, NULL at first
void muninn_set_thread_data(MuninnThread *thread, void *data);
void muninn_each_thread(MuninnThreadFn *fn, void *data);   // [outside]

// [any] In a call with MUNINN_CALL_READS_REGISTERS, and outside: of the thread that the callback
// runs in.
uint64_t muninn_register(const MuninnThread *thread, unsigned reg);
void muninn_set_register(MuninnThread *thread, unsigned reg, uint64_t value);

// [outside] Where the thread is: the instruction that it goes on with. After a system call and in
// wraps that is behind the instruction which has made the event happen.
MuninnAddress muninn_pc(const MuninnThread *thread);

// [any] Memory of the client's. False: it is not there.
bool muninn_read(MuninnAddress address, void *to, size_t size);
bool muninn_write(MuninnAddress address, const void *from, size_t size);

// ---------------------------------------------------------------------------- places and contexts

// [any] The calling context of the thread, with `pc` as the innermost frame: a number that is the
// same whenever the stack is, from 1 on. 0: it is not known. Wants MUNINN_NEED_CONTEXTS.
uint32_t muninn_context(MuninnThread *thread, MuninnAddress pc);
// Its frames, innermost first: `pc`, then return addresses. Returns how many there are, and writes
// at most `max`.
size_t muninn_context_frames(uint32_t context, MuninnAddress *frames, size_t max);

// A file that is mapped.
typedef struct MuninnModule {
    MuninnAddress start, end; // of the mapping that was asked for
    uint64_t offset;          // of that mapping in the file
    const char *path;
} MuninnModule;
// [outside], and in callbacks of blocks and mappings: what is mapped at an address. False: no file.
// `path` is valid until it is unmapped.
bool muninn_module_at(MuninnAddress address, MuninnModule *module);

// [outside] "function (file.c:12)" or what else is known of a code address, written to `text`.
// Wants MUNINN_NEED_NAMES. `thread` is the one that the callback runs in, or NULL.
const char *muninn_name(MuninnThread *thread, MuninnAddress pc, char *text, size_t size);

// ---------------------------------------------------------------------------------------- profiles
// A profile is costs of code addresses. The monitor adds them up by file, function and line and
// writes them in the format of cachegrind, which cg_annotate, cg_diff and cg_merge read: to the
// file that --profile-file names, or TOOL.out.PID.

enum { MUNINN_PROFILES_MAX = 8, MUNINN_PROFILE_EVENTS_MAX = 32 };
// [start] `events` has the names of what is counted, by spaces: "Ir Dr Dw".
uint32_t muninn_profile(const char *events);
// [outside] Adds to the cost of an address: a value for each event.
void muninn_profile_cost(uint32_t profile, MuninnAddress pc, const uint64_t *values);
// [outside] It is whole: written, and empty again. At the end of the process, say.
void muninn_profile_done(uint32_t profile);

// ---------------------------------------------------------------------------------------- findings
// A finding is something that the user should know of, at a place: what memcheck calls an error.
// The tool describes its kinds once; from then on they are in every output that the user has asked
// for (text, XML, JSON, SARIF, the page of `muninn view`), can be suppressed and compared with a
// baseline, and decide the exit status with --error-exitcode. A finding with the same kind, the
// same key and the same innermost frames as an earlier one only counts that one up.

// How a value is shown in sentences; its C type is uint64_t but for texts.
typedef enum MuninnFieldType {
    MUNINN_FIELD_NUMBER,   // 4096
    MUNINN_FIELD_AMOUNT,   // 4,096
    MUNINN_FIELD_SIGNED,   // -1
    MUNINN_FIELD_CHANGE,   // +4,096
    MUNINN_FIELD_ADDRESS,  // 0x4a48044
    MUNINN_FIELD_FLAG,     // 0 or 1
    MUNINN_FIELD_CHOICE,   // one of `words`
    MUNINN_FIELD_PROTECTION, // PROT_ bits: r-x
    MUNINN_FIELD_TEXT,
} MuninnFieldType;

typedef struct MuninnField {
    const char *name;
    MuninnFieldType type;
    const char *words; // of a choice: "read|write"
} MuninnField;
enum { MUNINN_FIELDS_MAX = 16 };

// Texts with fields in braces: "{size} bytes of {area} {is_old?that were freed }are written".
// {name? text} is there if the field is not 0, {name:a|b|c} a word of one's own for a choice.
typedef struct MuninnFindingKind {
    const char *id;          // "late-answer": lower case, stable for ever
    const char *sentence;    // the headline; NULL: the title
    const char *title;       // one line about the kind, without fields; NULL: the id
    const char *level;       // "error", "warning" or "note"; NULL: error
    const char *suppression; // the kind in suppression files, "Tool:Kind" there; NULL: the id
    const char *help;        // a link for people; NULL: none
    const MuninnField *fields;
    size_t field_count;
} MuninnFindingKind;

// What stands below the headline: a sentence, and a stack if it has one.
typedef struct MuninnPartKind {
    const char *id;
    const char *sentence;
    const MuninnField *fields;
    size_t field_count;
} MuninnPartKind;

typedef union MuninnValue {
    uint64_t number;
    const char *text; // NULL: none
} MuninnValue;

typedef struct MuninnPart {
    uint32_t kind;
    uint32_t context; // 0: no stack
    const MuninnValue *values; // as many as its kind has fields
} MuninnPart;

// [start] Describes a kind. The description is copied; ids of the engine's own kinds are taken.
uint32_t muninn_finding_kind(const MuninnFindingKind *kind);
uint32_t muninn_part_kind(const MuninnPartKind *kind);

// [any] but block callbacks: tells a finding, at the stack `context` (0: without one), and waits
// until the user's outputs have it. False: it is suppressed, or known.
bool muninn_finding(MuninnThread *thread, uint32_t kind, uint32_t context, uint64_t key,
                    const MuninnValue *values, const MuninnPart *parts, size_t part_count);

// ---------------------------------------------------------------------------------------- speaking

// [any] A line in the log, where the engine's own go: standard error, or --log-file and its kin.
void muninn_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void muninn_log_list(const char *format, va_list arguments);
// [any] Opens a file for writing. %p in the name becomes the process id, %q{VAR} a variable of the
// environment. Its number is hidden from the client. Negative: -errno.
int muninn_open(const char *path_template);

#ifdef __cplusplus
}
#endif

#endif
