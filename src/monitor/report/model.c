// SPDX-License-Identifier: MIT
//
// What all writers say alike: the banner, names of frames and signals, which
// frames are shown, which findings are wanted, what identifies one.
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/report/report_internal.h"

void report_age(const Report *report, char ret_text[32])
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    i64 ms = now.tv_sec * 1000ll + now.tv_nsec / 1000000 - report->run.start_ms;
    u64 age = ms > 0 ? (u64)ms : 0;
    snprintf(ret_text, 32, "%02u:%02u:%02u:%02u.%03u ", (u32)(age / 86400000),
             (u32)(age / 3600000 % 24), (u32)(age / 60000 % 60), (u32)(age / 1000 % 60),
             (u32)(age % 1000));
}

// Blanks and what a shell would take apart get a backslash, as the incumbent does.
static void put_argument(Buffer *out, const char *argument)
{
    for (; *argument; argument++) {
        if (strchr(" \t\n\\", *argument))
            buffer_putc(out, '\\');
        buffer_putc(out, *argument);
    }
}

void report_banner_line(const Report *report, int index, Buffer *out)
{
    const RunInfo *run = &report->run;

    switch (index) {
    case 0:
        buffer_puts(out, run->tool_title ? run->tool_title : run->tool);
        break;
    case 1:
        buffer_puts(out, "Copyright (C) 2026, and MIT licensed, by the Muninn authors");
        // Filters remove the line by these words; they are true of what the name stands for.
        if (report->options->as_valgrind)
            buffer_puts(out, "; Valgrind is (C) 2002-2024, and GNU GPL'd, by Julian Seward et al.");
        break;
    case 2:
        buffer_puts(out, report->options->as_valgrind
                             ? "Using Valgrind-" COMPAT_VERSION
                               " and LibVEX; rerun with -h for copyright info"
                             : "Using Muninn-" MUNINN_VERSION "; rerun with -h for help");
        break;
    case 3:
        buffer_puts(out, "Command:");
        for (int i = 0; i < run->argc; i++) {
            buffer_putc(out, ' ');
            put_argument(out, run->argv[i]);
        }
        break;
    }
}

// The kernel's, of which libc keeps the first two for itself.
enum { FIRST_REAL_TIME = 32 };

const char *signal_name(i32 number, char buffer[16])
{
    const char *name = number > 0 ? sigabbrev_np(number) : NULL;

    if (name)
        snprintf(buffer, 16, "SIG%s", name);
    else if (number >= FIRST_REAL_TIME && number < NSIG)
        snprintf(buffer, 16, "SIGRT%d", number - FIRST_REAL_TIME);
    else
        snprintf(buffer, 16, "SIG%d", number);
    return buffer;
}

static const struct {
    i32 signal, code;
    const char *event;
} signal_events[] = {
    {SIGSEGV, SEGV_MAPERR, "Access not within mapped region"},
    {SIGSEGV, SEGV_ACCERR, "Bad permissions for mapped region"},
    {SIGSEGV, SI_KERNEL, "General Protection Fault"},
    {SIGILL, ILL_ILLOPC, "Illegal opcode"},
    {SIGILL, ILL_ILLOPN, "Illegal operand"},
    {SIGILL, ILL_ILLADR, "Illegal addressing mode"},
    {SIGILL, ILL_ILLTRP, "Illegal trap"},
    {SIGILL, ILL_PRVOPC, "Privileged opcode"},
    {SIGILL, ILL_PRVREG, "Privileged register"},
    {SIGILL, ILL_COPROC, "Coprocessor error"},
    {SIGILL, ILL_BADSTK, "Internal stack error"},
    {SIGFPE, FPE_INTDIV, "Integer divide by zero"},
    {SIGFPE, FPE_INTOVF, "Integer overflow"},
    {SIGFPE, FPE_FLTDIV, "FP divide by zero"},
    {SIGFPE, FPE_FLTOVF, "FP overflow"},
    {SIGFPE, FPE_FLTUND, "FP underflow"},
    {SIGFPE, FPE_FLTRES, "FP inexact"},
    {SIGFPE, FPE_FLTINV, "FP invalid operation"},
    {SIGFPE, FPE_FLTSUB, "FP subscript out of range"},
    {SIGBUS, BUS_ADRALN, "Invalid address alignment"},
    {SIGBUS, BUS_ADRERR, "Non-existent physical address"},
    {SIGBUS, BUS_OBJERR, "Hardware error"},
};

const char *signal_event(i32 number, i32 code)
{
    for (size_t i = 0; i < ARRAY_LEN(signal_events); i++)
        if (signal_events[i].signal == number && signal_events[i].code == code)
            return signal_events[i].event;
    return NULL;
}

bool signal_is_fault(i32 number, i32 code)
{
    return code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                        number == SIGFPE || number == SIGTRAP);
}

const char *xml_kind(const Options *options, const KindDescription *kind)
{
    return options->xml_protocol < 5 ? kind->xml_4 : kind->xml;
}

bool finding_has_fd(const Finding *finding)
{
    return finding->kind->shape == shape_in_table(SHAPE_DESCRIPTOR);
}

// ----------------------------------------------------------------------- frames

static bool is_below_main(const char *function)
{
    static const char *const names[] = {"__libc_start_main", "__libc_start_call_main",
                                        "generic_start_main", "libc_start_main_stage2"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t length = strlen(names[i]);
        // A symbol's version may follow: __libc_start_main@@GLIBC_2.34.
        if (strncmp(function, names[i], length) == 0 && strchr("@.", function[length]))
            return true;
    }
    return false;
}

const char *frame_function(const Options *options, const Frame *frame)
{
    if (!frame->function)
        return "???";
    if (!options->show_below_main && is_below_main(frame->function))
        return "(below main)";
    return frame->function;
}

size_t report_visible_frames(const Options *options, const Frame *frames, size_t count)
{
    size_t shown = 0;

    // From the outside, since main may call itself.
    for (size_t i = count; i-- > 0 && !options->show_below_main;) {
        if (frames[i].function && strcmp(frames[i].function, "main") == 0) {
            count = i + 1;
            break;
        }
    }
    for (size_t i = 0; i < count && !options->show_below_main; i++) {
        if (frames[i].function && is_below_main(frames[i].function))
            count = i + 1;
    }
    // An inlined function is part of its caller's frame.
    u32 callers = options->num_callers > 0 ? (u32)options->num_callers : 1;
    for (u32 seen = 0; shown < count && seen < callers; shown++)
        seen += !frames[shown].inlined;
    return shown;
}

void frame_source_path(const Frame *frame, Buffer *out)
{
    if (!frame->file)
        return;
    if (frame->directory && frame->file[0] != '/') {
        buffer_puts(out, frame->directory);
        if (frame->directory[0])
            buffer_putc(out, '/');
    }
    buffer_puts(out, frame->file);
}

void frame_put_file(const Options *options, const Frame *frame, Buffer *out)
{
    const OptionList *after = &options->fullpath_after;

    if (after->count == 0 || !frame->directory) {
        buffer_puts(out, frame->file);
        return;
    }
    size_t begin = out->size;
    frame_source_path(frame, out);
    buffer_putc(out, 0);
    if (out->failed)
        return;
    out->size--;
    for (u32 i = 0; i < after->count; i++) {
        const char *prefix = after->items[i];
        const char *found = strstr(out->data + begin, prefix);
        if (found && *prefix) {
            size_t skip = (size_t)(found - out->data) - begin + strlen(prefix);
            out->size -= skip;
            memmove(out->data + begin, out->data + begin + skip, out->size - begin);
            return;
        }
    }
}

void frame_put_place(const Options *options, const Frame *frame, Buffer *out, Reader reader)
{
    if (frame->file) {
        Buffer file = {0};
        frame_put_file(options, frame, &file);
        buffer_puts(out, " (");
        buffer_put_safe(out, file.data, file.size, reader);
        if (frame->line)
            buffer_printf(out, ":%u", frame->line);
        buffer_putc(out, ')');
        buffer_free(&file);
    } else if (frame->object) {
        buffer_puts(out, " (in ");
        buffer_puts_safe(out, frame->object, reader);
        buffer_putc(out, ')');
    }
}

size_t report_frame_text(const Report *report, const Frame *frame, char *buffer, size_t buffer_size)
{
    Buffer out = {0};

    if (buffer_size == 0)
        return 0;
    buffer_puts(&out, frame_function(report->options, frame));
    // The text is made harmless when it is written, with what surrounds it.
    if (frame->file) {
        buffer_puts(&out, " (");
        frame_put_file(report->options, frame, &out);
        if (frame->line)
            buffer_printf(&out, ":%u", frame->line);
        buffer_putc(&out, ')');
    } else if (frame->object) {
        buffer_printf(&out, " (in %s)", frame->object);
    }
    size_t size = min_u64(out.size, buffer_size - 1);
    if (size)
        memcpy(buffer, out.data, size);
    buffer[size] = 0;
    buffer_free(&out);
    return size;
}

const Frame *stack_first_source(const ReportStack *stack)
{
    for (size_t i = 0; i < stack->count; i++)
        if (stack->frames[i].file && stack->frames[i].file[0] && stack->frames[i].line)
            return &stack->frames[i];
    return NULL;
}

// ------------------------------------------------------- which finding, and whose

// A pattern without wildcards names a file or everything below a directory; a
// relative one may begin at any component.
static bool path_matches(const char *pattern, const char *path)
{
    size_t length = strlen(pattern);

    if (length == 0)
        return false;
    if (strpbrk(pattern, "*?[")) {
        if (fnmatch(pattern, path, 0) == 0)
            return true;
        const char *name = strrchr(path, '/');
        return name && !strchr(pattern, '/') && fnmatch(pattern, name + 1, 0) == 0;
    }
    while (length > 1 && pattern[length - 1] == '/')
        length--;
    for (const char *at = path; at; at = strchr(at, '/')) {
        if (pattern[0] != '/' && *at == '/')
            at++;
        if (strncmp(at, pattern, length) == 0 && (at[length] == 0 || at[length] == '/'))
            return true;
        if (pattern[0] == '/')
            return false;
    }
    return false;
}

static bool frame_is_wanted(const OptionList *only, const Frame *frame)
{
    Buffer path = {0};
    bool wanted = false;

    frame_source_path(frame, &path);
    buffer_putc(&path, 0);
    for (u32 i = 0; i < only->count && !wanted; i++) {
        const char *pattern = only->items[i];
        if (pattern[0] == '.' && pattern[1] == '/')
            pattern += 2;
        wanted = (frame->object && path_matches(pattern, frame->object)) ||
                 (!path.failed && path_matches(pattern, path.data));
    }
    buffer_free(&path);
    return wanted;
}

bool only_wants(const Options *options, const Finding *finding)
{
    if (options->only.count == 0)
        return true;
    for (size_t i = 0; i < finding->stack.count; i++)
        if (frame_is_wanted(&options->only, &finding->stack.frames[i]))
            return true;
    return false;
}

// FNV-1a of 64 bits: a baseline has thousands of findings, not billions.
static u64 hash_text(u64 hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 0x100000001b3ull;
    return (hash ^ 0xff) * 0x100000001b3ull; // "ab","c" is not "a","bc"
}

void report_fingerprint(const Finding *finding, char ret_text[17])
{
    u64 hash = hash_text(0xcbf29ce484222325ull, finding->kind->id);
    const char *last = "";

    if (finding->param)
        hash = hash_text(hash, finding->param);
    for (size_t i = 0; i < finding->stack.count; i++) {
        const Frame *frame = &finding->stack.frames[i];
        const char *name = frame->function;
        if (!name && frame->object)
            name = strrchr(frame->object, '/') ? strrchr(frame->object, '/') + 1 : frame->object;
        // The depth of a recursion is chance.
        if (!name || strcmp(name, last) == 0)
            continue;
        hash = hash_text(hash, name);
        last = name;
    }
    snprintf(ret_text, 17, "%016llx", (unsigned long long)hash);
}
