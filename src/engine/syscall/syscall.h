// SPDX-License-Identifier: MIT
//
// What every system call of Linux on x86-64 reads and writes, as data.
//
// A row (SyscallRow) names a call and its arguments: which are descriptors, which
// are paths, which point to memory, in which direction and how long. Calls that
// multiplex (ioctl, fcntl, prctl, futex, bpf, ...) have a sub-table: the value of
// an argument selects another row that replaces the first. syscall_ranges() turns
// a row and the six register values into the byte ranges that the kernel will
// read, may write (before the call) and has written (after it).
//
// What must stay true: nothing here dereferences a client pointer; client memory
// is seen only through SyscallCall.read_guest, which may refuse. Counts that come
// from the client are capped. A range reported AFTER lies inside one that was
// reported BEFORE, by the same call or, for asynchronous reads, when they were submitted.
#ifndef MUNINN_ENGINE_SYSCALL_SYSCALL_H
#define MUNINN_ENGINE_SYSCALL_SYSCALL_H

#include "base/types.h"

// NR_read, NR_write, ... from numbers.def. Our own numbers: the headers of the
// build machine may be older than the kernel the client runs on.
enum SyscallNumber {
#define NR(name, number) NR_##name = number,
#include "engine/syscall/numbers.def"
#undef NR
    NR_LIMIT = 470, // one past the highest number that has a row
};

#define SYSCALL_ARGS 6

// ---- Rows ------------------------------------------------------------------

// What an argument, or a field of a struct it points to, is. The scalars come
// first; ARG_PATH and all that follow are addresses the kernel dereferences.
typedef enum SyscallArgKind {
    ARG_NONE = 0, // past the last argument
    ARG_UNUSED,   // passed, but not looked at
    ARG_INT,      // 32-bit scalar: the upper half of the register is ignored
    ARG_FLAGS,    // 32-bit set of bits
    ARG_FD,       // descriptor, 32 bits
    ARG_DIRFD,    // descriptor or AT_FDCWD, 32 bits
    ARG_LONG,     // 64-bit scalar
    ARG_SIZE,     // 64-bit length or count
    ARG_PTR,      // address or cookie that the call does not dereference
    ARG_TEXT,     // only in structs: characters in place, up to a NUL or the end
    ARG_STRUCT,   // only in structs: another struct in place
    ARG_PATH,     // -> NUL-terminated file name, read
    ARG_STR,      // -> any other NUL-terminated string, read
    ARG_STRV,     // -> NULL-terminated array of strings, read (execve)
    ARG_CMSG,     // -> control messages, read; the padding between them is not
    ARG_IN,       // -> memory that the kernel reads
    ARG_OUT,      // -> memory that the kernel writes
    ARG_INOUT,    // -> memory that the kernel reads, then writes
    ARG_KINDS,
} SyscallArgKind;

// How a length is found. "arg" is the index of an argument of the same call, or of
// a field of the same struct when the rule stands in a struct.
typedef enum SyscallLenRule {
    LEN_UNSET = 0,      // in .len: no memory; in .wrote: the same as .len
    LEN_RULE_CONST,     // plus
    LEN_RULE_ARG,       // arg * scale + plus
    LEN_RULE_VECTOR,    // arg * scale, or nothing: more than UIO_MAXIOV elements are refused
    LEN_RULE_FDS,       // arg * scale, or nothing: more than the process may have descriptors
    LEN_RULE_ARG_BITS,  // arg - plus counts bits, stored in 64-bit words
    LEN_RULE_ARG_PAGES, // one byte for each page of the arg bytes (mincore)
    LEN_RULE_PRODUCT,   // arg * other arg * scale
    LEN_RULE_AT_ARG,    // the u32 at `other` bytes behind arg, as it was before the call
    LEN_RULE_AT_ARG64,  // the u64 at the address in arg, as it was before the call
    LEN_RULE_NOW,       // the u32 at the address in arg, as it is after the call
    LEN_RULE_KEPT,      // field arg of this struct, as it was before the call
    LEN_RULE_INSIDE,    // the u32 at offset `other` of the memory itself * scale + plus
    LEN_RULE_RESULT,    // result * scale + plus
    LEN_RULE_RESULT_FITS, // the result, or nothing if it is longer than the memory (keyctl)
    LEN_RULE_SPREAD,    // what is left of the result after the preceding buffers
    LEN_RULE_SEMAPHORES, // 2 bytes for each semaphore of the set in arg; the kernel is asked
    LEN_RULE_IOCTL,     // the size encoded in the ioctl number in arg
    LEN_RULES,
} SyscallLenRule;

typedef struct SyscallLen {
    u8 rule;  // SyscallLenRule
    u8 arg;   // index of the argument or field
    u8 other; // second factor of a product; offset of a length inside the memory
    u32 scale;
    u32 plus;
} SyscallLen;

#define LEN_CONST(n) { .rule = LEN_RULE_CONST, .plus = (n) }
#define LEN_OF_ARG(i) { .rule = LEN_RULE_ARG, .arg = (i), .scale = 1 }
#define LEN_OF_ARG_TIMES(i, n) { .rule = LEN_RULE_ARG, .arg = (i), .scale = (n) }
// A vector's count reaches the check in 32 bits, whatever the register's upper half holds. Where
// the kernel looks at all 64 it is a LEN_OF_WIDE_VECTOR.
#define LEN_OF_VECTOR(i, n) { .rule = LEN_RULE_VECTOR, .arg = (i), .scale = (n), .plus = ~0u }
#define LEN_OF_WIDE_VECTOR(i, n) { .rule = LEN_RULE_VECTOR, .arg = (i), .scale = (n) }
#define LEN_OF_FDS(i, n) { .rule = LEN_RULE_FDS, .arg = (i), .scale = (n) }
#define LEN_OF_ARG_PLUS(i, n) { .rule = LEN_RULE_ARG, .arg = (i), .scale = 1, .plus = (n) }
#define LEN_OF_ARGS(i, j, n) { .rule = LEN_RULE_PRODUCT, .arg = (i), .other = (j), .scale = (n) }
#define LEN_OF_BITS(i) { .rule = LEN_RULE_ARG_BITS, .arg = (i), .scale = 1 }
#define LEN_OF_BITS_LESS(i, n) { .rule = LEN_RULE_ARG_BITS, .arg = (i), .scale = 1, .plus = (n) }
#define LEN_OF_PAGES(i) { .rule = LEN_RULE_ARG_PAGES, .arg = (i), .scale = 1 }
#define LEN_AT_ARG(i) { .rule = LEN_RULE_AT_ARG, .arg = (i), .scale = 1 }
#define LEN_AT_ARG_OFFSET(i, at) { .rule = LEN_RULE_AT_ARG, .arg = (i), .other = (at), .scale = 1 }
#define LEN_OF_SEMAPHORES(i) { .rule = LEN_RULE_SEMAPHORES, .arg = (i), .scale = 2 }
#define LEN_AT_ARG_TIMES(i, n) { .rule = LEN_RULE_AT_ARG, .arg = (i), .scale = (n) }
#define LEN_AT_ARG_NOW(i) { .rule = LEN_RULE_NOW, .arg = (i), .scale = 1 }
#define LEN_AT_ARG_NOW_TIMES(i, n) { .rule = LEN_RULE_NOW, .arg = (i), .scale = (n) }
#define LEN_KEPT(i) { .rule = LEN_RULE_KEPT, .arg = (i), .scale = 1 }
#define LEN_KEPT_TIMES(i, n) { .rule = LEN_RULE_KEPT, .arg = (i), .scale = (n) }
#define LEN_AT_ARG64(i) { .rule = LEN_RULE_AT_ARG64, .arg = (i), .scale = 1 }
#define LEN_INSIDE(at) { .rule = LEN_RULE_INSIDE, .other = (at), .scale = 1 }
#define LEN_INSIDE_TIMES(at, n, header) \
    { .rule = LEN_RULE_INSIDE, .other = (at), .scale = (n), .plus = (header) }
#define LEN_OF_RESULT { .rule = LEN_RULE_RESULT, .scale = 1 }
#define LEN_OF_RESULT_TIMES(n) { .rule = LEN_RULE_RESULT, .scale = (n) }
#define LEN_OF_RESULT_PLUS(n) { .rule = LEN_RULE_RESULT, .scale = 1, .plus = (n) }
#define LEN_OF_RESULT_IF_IT_FITS { .rule = LEN_RULE_RESULT_FITS, .scale = 1 }
#define LEN_SPREAD { .rule = LEN_RULE_SPREAD, .scale = 1 }
#define LEN_OF_IOCTL(i) { .rule = LEN_RULE_IOCTL, .arg = (i), .scale = 1 }

// When the kernel writes an output.
typedef enum SyscallOn {
    ON_DEFAULT = 0,      // as the memory around it; for an argument: on success
    ON_SUCCESS,
    ON_NONZERO,          // on success with a result other than 0 (wait4 with WNOHANG)
    ON_EINTR,            // only when interrupted (nanosleep's remaining time)
    ON_SUCCESS_OR_EINTR, // select's timeout, poll's revents
    ON_SUCCESS_OR_EOVERFLOW, // name_to_handle_at tells the size it needs
    ON_ALWAYS,           // whatever the result (bpf's verifier log)
    ON_NEVER,            // later, by another call or by no call at all (io_submit's buffers)
} SyscallOn;

// The direction of a field's own bytes, where it differs from its struct's.
typedef enum SyscallDir { DIR_DEFAULT = 0, DIR_IN, DIR_OUT, DIR_INOUT } SyscallDir;

// An argument that exists only when another one has, or has not, some bits: open's
// mode with O_CREAT, clone's tls with CLONE_SETTLS.
typedef enum SyscallWhenRule {
    WHEN_ALWAYS = 0,
    WHEN_RULE_ANY,  // some bit of mask is set in arg
    WHEN_RULE_NONE, // no bit of mask is set in arg
    WHEN_RULE_IS,   // arg has exactly this value
    WHEN_RULE_BELOW, // arg is smaller
} SyscallWhenRule;

typedef struct SyscallWhen {
    u8 rule;
    u8 arg;
    u32 mask;
} SyscallWhen;

#define WHEN_ANY(i, bits) { WHEN_RULE_ANY, (i), (bits) }
#define WHEN_NONE(i, bits) { WHEN_RULE_NONE, (i), (bits) }
#define WHEN_IS(i, value) { WHEN_RULE_IS, (i), (value) }
#define WHEN_BELOW(i, value) { WHEN_RULE_BELOW, (i), (value) }

// How the elements of an array are named in messages.
typedef enum SyscallIndex {
    INDEX_NONE = 0, // poll(ufds.fd)
    INDEX_NUMBER,   // pwritev(vector[1])
    INDEX_DOTS,     // writev(vector[...])
    INDEX_LETTER,   // execve(argv[i])
} SyscallIndex;

typedef struct SyscallType SyscallType;
typedef struct SyscallSub SyscallSub;

// An argument of a call or a field of a struct. A call's arguments are a struct of
// six 8-byte fields, which is why one type serves both.
typedef struct SyscallArg {
    const char *name;  // in messages; a field carries its separator: ".sun_path", "->sa_flags",
                       // "&->it_value" for an ampersand in front of it all
    u8 kind;           // SyscallArgKind
    u8 dir;            // SyscallDir, fields only
    u8 on;             // SyscallOn
    u8 index;          // SyscallIndex
    bool null_ok;      // NULL means "absent", not an error
    u8 null_with;      // 1 + index of an argument: NULL is no error if that one is NULL, too
    bool null_off_socket; // NULL is no error where the first argument is no socket: that is
                          // found out before
    u16 offset;        // fields only: where it lies in its struct
    u16 size;          // fields only: its bytes; FIELD_REST: up to the end of the memory
    SyscallWhen when;  // whether it takes part at all
    SyscallLen len;    // bytes behind the pointer that the kernel may touch
    SyscallLen wrote;  // bytes that it has written; unset: all of .len
    const SyscallType *type; // fields of what is pointed to, or NULL: plain bytes
} SyscallArg;

#define FIELD_REST 0xffff
#define TYPE_BYTES_MAX 320 // no struct with fields is larger

// A variant with this key stands for all values that have none.
#define VARIANT_OTHER (~0ull)

typedef struct SyscallVariant {
    u64 key;
    const SyscallType *type;
} SyscallVariant;

// The layout of memory that is checked field by field: what lies between the
// fields is padding, or ignored by the kernel. Fields end with an ARG_NONE.
struct SyscallType {
    const char *name;
    u32 size;         // of one element
    bool is_whole;    // its own bytes are spoken of by the name of the pointer: sendmsg(msg)
    bool is_single;   // one element, however long the memory is (sockaddr, clone_args)
    bool has_budget;  // field `budget` holds the bytes received into this element (recvmmsg)
    u8 budget;
    u8 selector;      // index of the field that selects the variant
    const SyscallArg *fields;
    const SyscallVariant *variants; // further fields by its value; ends with a NULL type
};

enum SyscallFlags {
    SYS_BLOCKS = 1 << 0,        // may wait: an asynchronous signal has to interrupt it
    SYS_NORETURN = 1 << 1,      // does not come back when it succeeds
    SYS_NEW_FD = 1 << 2,        // the result is a new descriptor
    SYS_ADDRESS_SPACE = 1 << 3, // changes mappings or their protection
    SYS_SIGNAL = 1 << 4,        // changes dispositions, masks or stacks of signals
    SYS_TASK = 1 << 5,          // creates or replaces a task
    SYS_OBSOLETE = 1 << 6,      // has a number, but no kernel of the 6.x series implements it
};

typedef struct SyscallRow {
    const char *name;            // "read"; in a sub-table the name of the operation: "TCGETS"
    u32 flags;                   // SyscallFlags
    SyscallArg args[SYSCALL_ARGS];
    const char *speaks_as;       // what messages about memory say instead of the name of the call
    const SyscallSub *sub;       // selects the row that replaces this one
} SyscallRow;

typedef struct SyscallSubRow {
    u64 key;
    SyscallRow row;
} SyscallSubRow;

// The key is (argument >> shift) & mask, or (argument << 32 | next argument) when
// `is_pair`. Rows are sorted by syscall_key_order(), which groups ioctls by driver.
struct SyscallSub {
    const char *name;
    u8 arg;
    u8 shift;
    bool is_pair;
    u32 mask;
    u32 count;
    const SyscallSubRow *rows;
    const SyscallSub *other; // asked when no row has the key
};

// The row of a call, or NULL when the number is unknown.
const SyscallRow *syscall_row(u64 nr);

// "read", or "sys_<number>" for an unknown call, which is why it takes a buffer.
const char *syscall_name(u64 nr, char *buf, size_t buf_size);

// The row of `sub` with this key, or NULL.
const SyscallRow *syscall_sub_row(const SyscallSub *sub, u64 key);
u64 syscall_key_order(u64 key);

static inline bool syscall_kind_is_pointer(u8 kind)
{
    return kind >= ARG_PATH && kind < ARG_KINDS;
}

// How many low bytes of the register the kernel looks at.
static inline unsigned syscall_kind_bytes(u8 kind)
{
    return kind <= ARG_UNUSED ? 0 : kind <= ARG_DIRFD ? 4 : 8;
}

static inline bool syscall_failed(u64 result)
{
    return result > (u64)-4096;
}

// ---- One call --------------------------------------------------------------

// Lengths that the kernel overwrites (socklen_t *), as they were before the call.
#define SYSCALL_SAVED_MAX 16

typedef struct SyscallSaved {
    GuestAddr address;
    u64 value;
} SyscallSaved;

// A system call about to be made, or just made. The same object must be given to
// both phases: BEFORE keeps in it what the kernel will overwrite.
typedef struct SyscallCall {
    u64 nr;
    u64 args[SYSCALL_ARGS];
    u64 result; // AFTER only: as in rax, -errno on failure
    const char *speaks_as; // instead of the row's name, in messages; NULL: as the row says

    // Copies client memory; false when any byte cannot be read. Never faults.
    bool (*read_guest)(GuestAddr address, void *dst, size_t len);

    u32 saved_count;
    SyscallSaved saved[SYSCALL_SAVED_MAX];
} SyscallCall;

// The row that describes this very call: sub-tables are followed by the values of
// the arguments. NULL when the number is unknown; when only the operation is (an
// ioctl with an unknown number), the row of the multiplexer itself.
const SyscallRow *syscall_resolve(const SyscallCall *call);

// Whether the argument takes part in this call (open's mode only with O_CREAT).
bool syscall_arg_is_used(const SyscallCall *call, const SyscallRow *row, unsigned arg);

typedef enum SyscallPhase {
    SYSCALL_BEFORE, // RANGE_IN: has to be addressable and defined; RANGE_OUT: addressable
    SYSCALL_AFTER,  // RANGE_OUT: has been written
} SyscallPhase;

typedef enum SyscallRangeDir { RANGE_IN, RANGE_OUT } SyscallRangeDir;

// A name as a list, innermost part first, so that a call that is in order pays
// for no text.
typedef struct SyscallPath {
    const struct SyscallPath *outer;
    const char *name;
    u8 index_style; // SyscallIndex
    u32 index;
} SyscallPath;

typedef struct SyscallRange {
    GuestAddr address;
    u64 size_bytes; // never 0, never past the end of the address space
    SyscallRangeDir dir;
    u8 kind;         // SyscallArgKind of what led here: ARG_PATH, ARG_STR, ARG_IN, ...
    u8 arg;          // index of the call's argument
    const char *call_name;
    const SyscallPath *path; // valid during the callback
} SyscallRange;

typedef void (*SyscallRangeFn)(const SyscallRange *range, void *arg);

// Calls `fn` for each range of memory of this call, in the order of the arguments.
// Unknown calls have none.
void syscall_ranges(SyscallCall *call, SyscallPhase phase, SyscallRangeFn fn, void *arg);

// "write(buf)", "sendmsg(msg.msg_iov[0])": the words of "Syscall param ... points to".
const char *syscall_range_text(const SyscallRange *range, char *buf, size_t buf_size);

// "write(count)": the words of "Syscall param ... contains uninitialised byte(s)".
const char *syscall_arg_text(u64 nr, const SyscallRow *row, unsigned arg, char *buf,
                             size_t buf_size);

#endif
