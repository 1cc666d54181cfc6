// SPDX-License-Identifier: MIT
//
// The words of --inject: SET[:error=ERRNO|:retval=N][:signal=SIG][:delay_enter=T][:delay_exit=T]
// [:when=FIRST[..LAST][+[STEP]]], as strace reads them.
#include "engine/perform/inject_rules.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { ERRNO_MAX = 4095, NAME_MAX = 48, TEXT_MAX = 4096 };

static const struct {
    const char *name, *calls;
} classes[] = {
    {"%memory", "brk,mmap,munmap,mprotect,mremap,madvise,mlock,munlock,mlockall,munlockall,"
                "mincore,msync,remap_file_pages,pkey_mprotect,mlock2"},
    {"%process", "fork,vfork,clone,clone3,execve,execveat,exit,exit_group,wait4,waitid,kill,"
                 "tkill,tgkill,pidfd_open,pidfd_send_signal"},
    {"%signal", "rt_sigaction,rt_sigprocmask,rt_sigpending,rt_sigsuspend,rt_sigtimedwait,"
                "rt_sigqueueinfo,rt_sigreturn,sigaltstack,kill,tkill,tgkill,pause,signalfd,"
                "signalfd4"},
    {"%network", "socket,socketpair,bind,connect,listen,accept,accept4,getsockname,getpeername,"
                 "sendto,recvfrom,sendmsg,recvmsg,sendmmsg,recvmmsg,shutdown,setsockopt,"
                 "getsockopt"},
};

typedef struct Parser {
    InjectRule *rule;
    bool has_result;
    char *error;
    size_t error_size;
} Parser;

static bool refuse(Parser *p, const char *what, const char *word)
{
    text_format(p->error, p->error_size, "%s: %s", word, what);
    return false;
}

// ------------------------------------------------------------- which calls

static void add(u64 *calls, u64 nr)
{
    calls[nr / 64] |= 1ull << nr % 64;
}

static bool add_name(u64 *calls, const char *name)
{
    for (u64 nr = 0; nr < NR_LIMIT; nr++) {
        const SyscallRow *row = syscall_row(nr);
        if (row && strcmp(row->name, name) == 0) {
            add(calls, nr);
            return true;
        }
    }
    return false;
}

// Calls with an argument of one of two kinds; ARG_NONE: all.
static void add_with(u64 *calls, SyscallArgKind kind, SyscallArgKind other)
{
    for (u64 nr = 0; nr < NR_LIMIT; nr++) {
        const SyscallRow *row = syscall_row(nr);
        for (u32 i = 0; row && i < SYSCALL_ARGS; i++) {
            if (kind == ARG_NONE || row->args[i].kind == kind || row->args[i].kind == other)
                add(calls, nr);
        }
    }
}

static bool add_class(u64 *calls, const char *name)
{
    char text[TEXT_MAX], *rest = text, *word;

    if (strcmp(name, "%file") == 0)
        add_with(calls, ARG_PATH, ARG_PATH);
    else if (strcmp(name, "%desc") == 0)
        add_with(calls, ARG_FD, ARG_DIRFD);
    else {
        const char *calls_of = NULL;
        for (u32 i = 0; i < ARRAY_LEN(classes); i++)
            calls_of = strcmp(classes[i].name, name) == 0 ? classes[i].calls : calls_of;
        if (!calls_of)
            return false;
        text_format(text, sizeof(text), "%s", calls_of);
        while ((word = strsep(&rest, ",")))
            add_name(calls, word);
    }
    return true;
}

// "?name": no matter if there is no such call.
static bool add_word(Parser *p, const char *word)
{
    u64 *calls = p->rule->calls;
    char *end;

    if (strcmp(word, "all") == 0) {
        add_with(calls, ARG_NONE, ARG_NONE);
        return true;
    }
    if (word[0] == '%')
        return add_class(calls, word) ||
               refuse(p, "no such class; there are %file, %desc, %memory, %process, %signal and "
                         "%network", word);
    u64 nr = strtoul(word, &end, 10);
    if (word[0] >= '0' && word[0] <= '9' && *end == '\0' && nr < NR_LIMIT) {
        add(calls, nr);
        return true;
    }
    return add_name(calls, word[0] == '?' ? word + 1 : word) || word[0] == '?' ||
           refuse(p, "no such system call", word);
}

static bool parse_set(Parser *p, char *text)
{
    bool others = text[0] == '!';
    char *rest = text + others, *word;

    while ((word = strsep(&rest, ","))) {
        if (!add_word(p, word))
            return false;
    }
    for (u32 i = 0; others && i < INJECT_WORDS; i++)
        p->rule->calls[i] = ~p->rule->calls[i];
    return true;
}

// --------------------------------------------------------------- what happens

static bool set_result(Parser *p, i64 result, const char *word)
{
    if (p->has_result)
        return refuse(p, "a call has one result: error= or retval=", word);
    p->has_result = p->rule->is_faked = true;
    p->rule->result = result;
    return true;
}

static bool parse_error(Parser *p, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);

    for (int i = 1; *end && i <= ERRNO_MAX; i++) {
        const char *name = strerrorname_np(i);
        if (name && strcmp(name, value) == 0)
            return set_result(p, -i, value);
    }
    if (*end || end == value || number < 1 || number > ERRNO_MAX)
        return refuse(p, "no such error; write ENOENT or a number up to 4095", value);
    return set_result(p, -number, value);
}

static bool parse_retval(Parser *p, const char *value)
{
    char *end;
    unsigned long long number = strtoull(value, &end, 0);

    if (*end || end == value || value[0] == '-')
        return refuse(p, "a number that is not negative is wanted", value);
    return set_result(p, (i64)number, value);
}

static bool parse_signal(Parser *p, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    const char *name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;

    for (int i = 1; *end && i < NSIG; i++) {
        const char *abbreviation = sigabbrev_np(i);
        if (abbreviation && strcmp(abbreviation, name) == 0) {
            p->rule->signal = i;
            return true;
        }
    }
    if (*end || end == value || number < 1 || number >= NSIG)
        return refuse(p, "no such signal", value);
    p->rule->signal = (int)number;
    return true;
}

static bool parse_delay(Parser *p, const char *value, u64 *ret_ns)
{
    static const struct {
        const char *name;
        u64 ns;
    } units[] = {{"", 1000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
    char *end;
    u64 number = strtoull(value, &end, 10);

    for (u32 i = 0; end != value && i < ARRAY_LEN(units); i++) {
        if (strcmp(end, units[i].name) == 0 && number <= 3600000000000ull / units[i].ns) {
            *ret_ns = number * units[i].ns;
            return true;
        }
    }
    return refuse(p, "a time of at most an hour is wanted, such as 100us, 20ms or 1s", value);
}

// FIRST, FIRST..LAST, either with +STEP; a + alone is +1.
static bool parse_when(Parser *p, const char *value)
{
    InjectRule *rule = p->rule;
    char *end;

    rule->first = rule->last = (u32)strtoul(value, &end, 10);
    rule->step = 0;
    if (strncmp(end, "..", 2) == 0) {
        rule->last = (u32)strtoul(end + 2, &end, 10);
        rule->step = 1;
    } else if (*end == '+') {
        rule->last = UINT32_MAX;
    }
    if (*end == '+') {
        rule->step = end[1] ? (u32)strtoul(end + 1, &end, 10) : 1;
        end += *end == '+';
    }
    bool has_step = rule->step || rule->last == rule->first;
    if (*end || rule->first == 0 || rule->last < rule->first || !has_step)
        return refuse(p, "FIRST, FIRST..LAST, FIRST+ or FIRST+STEP is wanted, counted from 1",
                      value);
    return true;
}

static bool parse_word(Parser *p, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        return refuse(p, "NAME=VALUE is wanted", word);
    *value++ = '\0';
    if (strcmp(word, "error") == 0)
        return parse_error(p, value);
    if (strcmp(word, "retval") == 0)
        return parse_retval(p, value);
    if (strcmp(word, "signal") == 0)
        return parse_signal(p, value);
    if (strcmp(word, "delay_enter") == 0)
        return parse_delay(p, value, &p->rule->enter_ns);
    if (strcmp(word, "delay_exit") == 0)
        return parse_delay(p, value, &p->rule->exit_ns);
    if (strcmp(word, "when") == 0)
        return parse_when(p, value);
    return refuse(p, "there are error, retval, signal, delay_enter, delay_exit and when", word);
}

bool inject_parse(const char *text, InjectRule *ret_rule, char *ret_error, size_t size)
{
    char copy[TEXT_MAX], *rest = copy, *word;
    Parser p = {.rule = ret_rule, .error = ret_error, .error_size = size};

    *ret_rule = (InjectRule){.first = 1, .last = UINT32_MAX, .step = 1};
    if (strlen(text) >= sizeof(copy))
        return refuse(&p, "too long", "the rule");
    text_format(copy, sizeof(copy), "%s", text);
    char *set = strsep(&rest, ":");
    if (!parse_set(&p, set))
        return false;
    while ((word = strsep(&rest, ":"))) {
        if (!parse_word(&p, word))
            return false;
    }
    const InjectRule *rule = ret_rule;
    if (!rule->is_faked && !rule->signal && !rule->enter_ns && !rule->exit_ns)
        return refuse(&p, "it says nothing that is to happen, such as error=ENOENT", text);
    return true;
}
