// SPDX-License-Identifier: MIT
//
// Walks the memory of one system call: from the registers through the rows of the
// table, the layouts and the client's own structs, down to ranges of bytes.
//
// The idea: the six argument registers are a struct of six fields, so one recursive
// walk over fields serves registers and memory alike. What must stay true:
//   R1 client memory is read only by read_guest; a refusal ends that branch of the
//      walk after the range that could not be read has been reported;
//   R2 the work is bounded by ELEMENTS_MAX and STRING_MAX, whatever the client says;
//   R3 AFTER reports no byte that BEFORE did not report, here or in io_submit.
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "engine/syscall/tables.h"

#define ELEMENTS_MAX (1u << 18)    // structs looked at in one call: argv may be long
#define STRING_MAX (128 * KiB)     // MAX_ARG_STRLEN: no string the kernel takes is longer
#define DEPTH_MAX 8

typedef struct Walk {
    SyscallCall *call;
    SyscallPhase phase;
    SyscallRangeFn fn;
    void *fn_arg;
    const char *call_name;
    u8 arg_index;
    u32 depth;
    u32 elements_left;
    u64 spread; // result bytes not yet attributed to a buffer
} Walk;

// A list of arguments or fields and the values they have.
typedef struct Scope {
    const SyscallArg *list;
    const u64 *registers; // of a call, or NULL
    const u8 *bytes;      // of a struct
    u64 size_bytes;
    GuestAddr base;
} Scope;

// Memory that an argument or field points to.
typedef struct Target {
    GuestAddr address;
    u64 len;   // BEFORE: may be touched; AFTER: has been written, where it is an output
    u8 dir;    // SyscallDir, never DIR_DEFAULT
    u8 on;     // SyscallOn, never ON_DEFAULT
    u8 kind;   // SyscallArgKind
} Target;

// ---- Reading the client ----------------------------------------------------

static bool read_guest(Walk *w, GuestAddr address, void *dst, size_t len)
{
    return address + len >= address && w->call->read_guest(address, dst, len);
}

static u64 load(const u8 *bytes, unsigned size)
{
    u64 value = 0;
    memcpy(&value, bytes, size < sizeof(value) ? size : sizeof(value));
    return value;
}

static u64 scope_value(const Scope *s, unsigned i)
{
    const SyscallArg *a = &s->list[i];
    if (s->registers)
        return syscall_kind_bytes(a->kind) == 4 ? (u32)s->registers[i] : s->registers[i];
    if ((u64)a->offset + a->size > s->size_bytes)
        return 0;
    return load(s->bytes + a->offset, a->size);
}

// A value used as a length. A negative int is an error to the kernel, not 4 GiB; a negative size is
// what a program takes for one when it did not look whether a call had failed.
static u64 scope_length(const Scope *s, unsigned i)
{
    const SyscallArg *a = &s->list[i];
    u64 value = scope_value(s, i);
    unsigned size = s->registers ? syscall_kind_bytes(a->kind) : a->size;
    if (value > INT64_MAX)
        return a->kind == ARG_SIZE ? INT64_MAX : 0;
    return size == 4 && value > INT32_MAX ? 0 : value;
}

static void keep(Walk *w, GuestAddr address, u64 value)
{
    SyscallCall *call = w->call;
    if (call->saved_count < SYSCALL_SAVED_MAX)
        call->saved[call->saved_count++] = (SyscallSaved){ address, value };
}

static bool kept(const Walk *w, GuestAddr address, u64 *ret_value)
{
    for (u32 i = 0; i < w->call->saved_count; i++) {
        if (w->call->saved[i].address == address) {
            *ret_value = w->call->saved[i].value;
            return true;
        }
    }
    return false;
}

// A length in client memory that the kernel may overwrite: as it was BEFORE.
static u64 length_at(Walk *w, GuestAddr address, size_t size)
{
    u64 value = 0;
    if (w->phase == SYSCALL_AFTER && kept(w, address, &value))
        return value;
    if (!address || !read_guest(w, address, &value, size))
        return 0;
    if (w->phase == SYSCALL_BEFORE)
        keep(w, address, value);
    return value;
}

static u64 length_kept(Walk *w, const Scope *s, unsigned i)
{
    u64 value = scope_length(s, i);
    GuestAddr address = s->base + s->list[i].offset;
    if (w->phase == SYSCALL_BEFORE)
        keep(w, address, value);
    else
        kept(w, address, &value);
    return value;
}

// The result as a count. A failure counts nothing, also where outputs are written ON_ALWAYS.
static u64 result_count(const Walk *w)
{
    return syscall_failed(w->call->result) ? 0 : w->call->result;
}

static u64 scaled(u64 value, const SyscallLen *l)
{
    u64 product;
    if (__builtin_mul_overflow(value, (u64)l->scale, &product) || product > INT64_MAX)
        return INT64_MAX;
    return product + l->plus;
}

// GETALL and SETALL name no count: it is a property of the set.
static u64 semaphore_count(int set)
{
    struct semid_ds status;
    return semctl(set, 0, IPC_STAT, &status) == 0 ? status.sem_nsems : 0;
}

// As many elements as the kernel takes at once, or none: it refuses a longer vector before it has
// looked at it. `mask`: the bits of the count that it looks at, 0 for all.
static u64 vector_count(u64 count, u32 mask)
{
    enum { UIO_MAXIOV = 1024 };
    if (mask)
        count &= mask;
    return count <= UIO_MAXIOV ? count : 0;
}

static u64 fd_count(u64 count)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && count > limit.rlim_cur ? 0 : count;
}

static bool is_socket(int fd)
{
    int type;
    socklen_t size = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

// The length by rule `l` of memory at `address`. For what was written, `limit` is how
// much was offered.
static u64 length(Walk *w, const Scope *s, const SyscallLen *l, GuestAddr address, u64 limit)
{
    u64 value = 0;
    switch ((SyscallLenRule)l->rule) {
    case LEN_UNSET:
    case LEN_RULES:
        return 0;
    case LEN_RULE_CONST:
        return l->plus;
    case LEN_RULE_ARG:
        return scaled(scope_length(s, l->arg), l);
    case LEN_RULE_VECTOR:
        return vector_count(scope_value(s, l->arg), l->plus) * l->scale;
    case LEN_RULE_FDS:
        return fd_count(scope_length(s, l->arg)) * l->scale;
    case LEN_RULE_KEPT:
        return scaled(length_kept(w, s, l->arg), l);
    case LEN_RULE_PRODUCT:
        if (__builtin_mul_overflow(scope_length(s, l->arg), scope_length(s, l->other), &value))
            return INT64_MAX;
        return scaled(value, l);
    case LEN_RULE_ARG_BITS:
        value = scope_length(s, l->arg);
        return value <= l->plus ? 0 : (value - l->plus + 63) / 64 * 8;
    case LEN_RULE_ARG_PAGES:
        return (scope_length(s, l->arg) + PAGE_SIZE - 1) / PAGE_SIZE;
    case LEN_RULE_AT_ARG:
        value = length_at(w, scope_value(s, l->arg) + l->other, sizeof(u32));
        return value > INT32_MAX ? 0 : scaled(value, l);
    case LEN_RULE_AT_ARG64:
        return scaled(length_at(w, scope_value(s, l->arg), sizeof(u64)), l);
    case LEN_RULE_NOW:
        read_guest(w, scope_value(s, l->arg), &value, sizeof(u32));
        return scaled(value, l);
    case LEN_RULE_INSIDE:
        // Where even the length cannot be read, its own bytes are the range to report.
        if (!read_guest(w, address + l->other, &value, sizeof(u32)))
            return l->other + sizeof(u32);
        return max_u64(scaled(value, l), l->other + sizeof(u32));
    case LEN_RULE_RESULT:
        return scaled(result_count(w), l);
    case LEN_RULE_RESULT_FITS:
        return result_count(w) <= limit ? result_count(w) : 0;
    case LEN_RULE_SPREAD:
        value = min_u64(w->spread, limit);
        w->spread -= value;
        return value;
    case LEN_RULE_SEMAPHORES:
        return scaled(semaphore_count((int)scope_value(s, l->arg)), l);
    case LEN_RULE_IOCTL:
        return scope_value(s, l->arg) >> 16 & 0x3fff;
    }
    return 0;
}

// ---- Reporting -------------------------------------------------------------

// Bytes up to the end of the address space.
static u64 room_behind(GuestAddr address)
{
    return address ? 0 - address : ~0ull;
}

static void emit(Walk *w, const Target *t, u64 len, SyscallRangeDir dir, const SyscallPath *path)
{
    len = min_u64(len, room_behind(t->address));
    if (!len)
        return;
    SyscallRange range = {
        .address = t->address,
        .size_bytes = len,
        .dir = dir,
        .kind = t->kind,
        .arg = w->arg_index,
        .call_name = w->call_name,
        .path = path,
    };
    w->fn(&range, w->fn_arg);
}

static bool was_written(const Walk *w, u8 on)
{
    u64 result = w->call->result;
    bool ok = !syscall_failed(result);
    switch ((SyscallOn)on) {
    case ON_DEFAULT:
    case ON_SUCCESS:
        return ok;
    case ON_NONZERO:
        return ok && result != 0;
    case ON_EINTR:
        return result == (u64)-EINTR;
    case ON_SUCCESS_OR_EINTR:
        return ok || result == (u64)-EINTR;
    case ON_SUCCESS_OR_EOVERFLOW:
        return ok || result == (u64)-EOVERFLOW;
    case ON_ALWAYS:
        return true;
    case ON_NEVER:
        return false;
    }
    return false;
}

// Reports plain bytes as this phase and direction demand.
static void emit_bytes(Walk *w, const Target *t, const SyscallPath *path)
{
    if (w->phase == SYSCALL_BEFORE)
        emit(w, t, t->len, t->dir == DIR_OUT ? RANGE_OUT : RANGE_IN, path);
    else if (t->dir != DIR_IN && was_written(w, t->on))
        emit(w, t, t->len, RANGE_OUT, path);
}

// ---- Strings and other irregular memory ------------------------------------

// The length of the string at `address`, its NUL included, but at most `max`. Memory
// that cannot be read ends it: the first such byte is counted, so that it is reported.
static u64 string_length(Walk *w, GuestAddr address, u64 max)
{
    char chunk[256];
    u64 len = 0;
    while (len < max) {
        u64 to_page_end = PAGE_SIZE - ((address + len) & (PAGE_SIZE - 1));
        u64 n = min_u64(min_u64(sizeof(chunk), to_page_end), max - len);
        if (!read_guest(w, address + len, chunk, n))
            return len + 1;
        const char *nul = memchr(chunk, 0, n);
        if (nul)
            return len + (u64)(nul - chunk) + 1;
        len += n;
    }
    return len;
}

static void walk_string(Walk *w, Target *t, const SyscallPath *path)
{
    if (w->phase != SYSCALL_BEFORE)
        return;
    t->len = string_length(w, t->address, STRING_MAX);
    emit(w, t, t->len, RANGE_IN, path);
}

static bool take_element(Walk *w)
{
    if (!w->elements_left)
        return false;
    w->elements_left--;
    return true;
}

// execve(argv) is the array with its NULL, execve(argv[i]) one of its strings, whose first has a
// name of its own: execve(argv[0]), but execve(envp[i]). A program must have a name: an argv that
// begins with its NULL is reported as a string that is not there.
static void walk_string_array(Walk *w, Target *t, const SyscallPath *path)
{
    if (w->phase != SYSCALL_BEFORE)
        return;
    u64 count = 0, string = 1;
    while (string && take_element(w)) {
        count++;
        if (!read_guest(w, t->address + (count - 1) * 8, &string, sizeof(string)))
            break;
    }
    emit(w, t, count * 8, RANGE_IN, path);
    for (u64 i = 0; i < count; i++) {
        bool is_program = i == 0 && strcmp(path->name, "argv") == 0;
        if (!read_guest(w, t->address + i * 8, &string, sizeof(string)) ||
            (!string && !is_program))
            break;
        SyscallPath element = { path, "", is_program ? INDEX_NUMBER : INDEX_LETTER, (u32)i };
        Target s = { string, 0, DIR_IN, ON_SUCCESS, ARG_STR };
        walk_string(w, &s, &element);
        if (!string)
            break;
    }
}

// Control messages are aligned to 8 bytes; the bytes between them mean nothing.
static void walk_control(Walk *w, Target *t, const SyscallPath *path)
{
    if (w->phase != SYSCALL_BEFORE)
        return;
    u64 at = 0;
    while (at + 16 <= t->len && take_element(w)) {
        u64 cmsg_len;
        Target message = { t->address + at, 16, DIR_IN, ON_SUCCESS, ARG_CMSG };
        bool ok = read_guest(w, message.address, &cmsg_len, sizeof(cmsg_len));
        if (ok && cmsg_len >= 16 && cmsg_len <= t->len - at)
            message.len = cmsg_len;
        else
            ok = false;
        emit(w, &message, message.len, RANGE_IN, path);
        if (!ok)
            break;
        at += (cmsg_len + 7) & ~7ull;
    }
}

// ---- Fields ----------------------------------------------------------------

static bool is_used(const Scope *s, const SyscallArg *a)
{
    switch ((SyscallWhenRule)a->when.rule) {
    case WHEN_ALWAYS:
        return true;
    case WHEN_RULE_ANY:
        return (scope_value(s, a->when.arg) & a->when.mask) != 0;
    case WHEN_RULE_NONE:
        return (scope_value(s, a->when.arg) & a->when.mask) == 0;
    case WHEN_RULE_IS:
        return (u32)scope_value(s, a->when.arg) == a->when.mask;
    case WHEN_RULE_BELOW:
        return scope_value(s, a->when.arg) < a->when.mask;
    }
    return true;
}

static void walk_elements(Walk *w, const SyscallType *type, const Target *t, u8 index_style,
                          const SyscallPath *path);

static u8 kind_dir(u8 kind)
{
    return kind == ARG_OUT ? DIR_OUT : kind == ARG_INOUT ? DIR_INOUT : DIR_IN;
}

// Whether a NULL in `a` is no error.
static bool may_be_null(const Scope *s, const SyscallArg *a)
{
    return a->null_ok || (a->null_with && !scope_value(s, a->null_with - 1u)) ||
           (a->null_off_socket && !is_socket((int)scope_value(s, 0)));
}

// Follows the pointer in `a`, whose value is `address`.
static void walk_pointer(Walk *w, const Scope *s, const SyscallArg *a, GuestAddr address, u8 on,
                         const SyscallPath *path)
{
    if (!address && may_be_null(s, a))
        return;
    Target t = { address, 0, kind_dir(a->kind), a->on ? a->on : on, a->kind };
    switch (a->kind) {
    case ARG_PATH:
    case ARG_STR:
        walk_string(w, &t, path);
        return;
    case ARG_STRV:
        walk_string_array(w, &t, path);
        return;
    }
    t.len = length(w, s, &a->len, address, 0);
    if (w->phase == SYSCALL_AFTER && t.dir != DIR_IN && a->wrote.rule != LEN_UNSET)
        t.len = min_u64(t.len, length(w, s, &a->wrote, address, t.len));
    t.len = min_u64(t.len, room_behind(address));
    if (a->kind == ARG_CMSG)
        walk_control(w, &t, path);
    else if (a->type)
        walk_elements(w, a->type, &t, a->index, path);
    else
        emit_bytes(w, &t, path);
}

// The bytes of field `a` itself, inside the struct `t`.
static Target field_target(const SyscallArg *a, const Target *t)
{
    u64 rest = a->offset < t->len ? t->len - a->offset : 0;
    return (Target){
        .address = t->address + a->offset,
        .len = a->size == FIELD_REST ? rest : min_u64(a->size, rest),
        .dir = a->dir ? a->dir : t->dir,
        .on = a->on ? a->on : t->on,
        .kind = t->kind,
    };
}

// Text in place ends at its NUL. An abstract socket name begins with one and has none at the end.
static void trim_text(Walk *w, Target *t)
{
    u8 first = 0;
    if (!read_guest(w, t->address, &first, 1) || !first)
        return;
    t->len = min_u64(t->len, string_length(w, t->address, t->len));
}

typedef struct Element {
    const SyscallType *head; // whose name and wholeness count, also for its variants
    Target target;           // its address and how much of it there is
    const SyscallPath *whole_path;
    const SyscallPath *path;
    bool is_readable; // its content is known and means something in this phase
} Element;

static bool field_is_used(const Element *e, const Scope *s, const SyscallArg *a)
{
    return a->when.rule == WHEN_ALWAYS || (e->is_readable && is_used(s, a));
}

// The bytes of the fields themselves. Neighbours that go by the same name are one range.
static void walk_own_bytes(Walk *w, const Element *e, const Scope *s)
{
    Target run = { 0 };
    for (const SyscallArg *a = s->list; a->kind != ARG_NONE; a++) {
        if (a->kind == ARG_STRUCT || !field_is_used(e, s, a))
            continue;
        Target self = field_target(a, &e->target);
        if (a->kind == ARG_TEXT)
            trim_text(w, &self);
        if (!e->head->is_whole) {
            SyscallPath named = { e->path, a->name, INDEX_NONE, 0 };
            emit_bytes(w, &self, *a->name ? &named : e->path);
        } else if (run.len && run.address + run.len == self.address && run.dir == self.dir &&
                   run.on == self.on) {
            run.len += self.len;
        } else {
            emit_bytes(w, &run, e->whole_path);
            run = self;
        }
    }
    emit_bytes(w, &run, e->whole_path);
}

// What the fields lead to.
static void walk_targets(Walk *w, const Element *e, const Scope *s)
{
    for (const SyscallArg *a = s->list; a->kind != ARG_NONE; a++) {
        bool is_pointer = syscall_kind_is_pointer(a->kind) && e->is_readable;
        if ((!is_pointer && a->kind != ARG_STRUCT) || !field_is_used(e, s, a))
            continue;
        SyscallPath named = { e->path, a->name, INDEX_NONE, 0 };
        const SyscallPath *path = *a->name ? &named : e->path;
        Target self = field_target(a, &e->target);
        if (a->kind == ARG_STRUCT)
            walk_elements(w, a->type, &self, INDEX_NONE, path);
        else
            walk_pointer(w, s, a, scope_value(s, (unsigned)(a - s->list)), self.on, path);
    }
}

static void walk_fields(Walk *w, const Element *e, const Scope *s)
{
    walk_own_bytes(w, e, s);
    walk_targets(w, e, s);
}

static const SyscallType *find_variant(const SyscallType *type, u64 key)
{
    for (const SyscallVariant *v = type->variants; v && v->type; v++) {
        if (v->key == key || v->key == VARIANT_OTHER)
            return v->type;
    }
    return NULL;
}

// One struct. Returns false when it could not be read.
static bool walk_element(Walk *w, const SyscallType *type, Element *e)
{
    u8 bytes[TYPE_BYTES_MAX];
    Scope s = { .list = type->fields, .bytes = bytes, .base = e->target.address };
    s.size_bytes = min_u64(e->target.len, type->size);

    // What an output holds before the call is meaningless.
    bool has_content = w->phase == SYSCALL_AFTER || e->target.dir != DIR_OUT;
    bool ok = !has_content || read_guest(w, e->target.address, bytes, s.size_bytes);
    e->is_readable = has_content && ok;
    if (e->is_readable && type->has_budget && w->phase == SYSCALL_AFTER)
        w->spread = scope_length(&s, type->budget);
    walk_fields(w, e, &s);

    const SyscallType *variant = NULL;
    if (e->is_readable && type->variants)
        variant = find_variant(type, scope_value(&s, type->selector));
    if (variant) {
        s.list = variant->fields;
        walk_fields(w, e, &s);
    }
    return ok;
}

static void walk_elements(Walk *w, const SyscallType *type, const Target *t, u8 index_style,
                          const SyscallPath *path)
{
    if (w->depth == DEPTH_MAX)
        return;
    w->depth++;
    u64 at = 0;
    for (u32 i = 0; at < t->len && take_element(w); i++) {
        SyscallPath indexed = { path, "", index_style, i };
        Element e = { .head = type, .target = *t, .whole_path = path, .path = path };
        if (index_style != INDEX_NONE)
            e.path = &indexed;
        e.target.address += at;
        e.target.len = type->is_single ? t->len : min_u64(type->size, t->len - at);
        if (!walk_element(w, type, &e))
            break;
        at += e.target.len;
    }
    w->depth--;
}

// ---- The call --------------------------------------------------------------

bool syscall_arg_is_used(const SyscallCall *call, const SyscallRow *row, unsigned arg)
{
    Scope s = { .list = row->args, .registers = call->args };
    return row->args[arg].kind != ARG_NONE && is_used(&s, &row->args[arg]);
}

// The name in messages: of the operation if it has one, else of the call.
static const char *spoken_name(u64 nr, const SyscallRow *row)
{
    const SyscallRow *top = syscall_row(nr);
    return row->speaks_as ? row->speaks_as : top->speaks_as ? top->speaks_as : top->name;
}

void syscall_ranges(SyscallCall *call, SyscallPhase phase, SyscallRangeFn fn, void *arg)
{
    const SyscallRow *row = syscall_resolve(call);
    if (!row)
        return;
    if (phase == SYSCALL_BEFORE)
        call->saved_count = 0;
    Walk w = {
        .call = call,
        .phase = phase,
        .fn = fn,
        .fn_arg = arg,
        .call_name = call->speaks_as ? call->speaks_as : spoken_name(call->nr, row),
        .elements_left = ELEMENTS_MAX,
    };
    if (phase == SYSCALL_AFTER)
        w.spread = result_count(&w);
    Scope s = { .list = row->args, .registers = call->args };
    for (unsigned i = 0; i < SYSCALL_ARGS; i++) {
        const SyscallArg *a = &row->args[i];
        if (!syscall_kind_is_pointer(a->kind) || !is_used(&s, a))
            continue;
        SyscallPath path = { NULL, a->name, INDEX_NONE, 0 };
        w.arg_index = (u8)i;
        walk_pointer(&w, &s, a, call->args[i], ON_SUCCESS, &path);
    }
}
