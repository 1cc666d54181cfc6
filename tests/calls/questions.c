// SPDX-License-Identifier: MIT
//
// The questions of a row: all arguments in order as far as their kinds tell, and then one after the
// other in every way that is wrong.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "walker.h"

int own_fds[OWN_FDS];

// Nothing waits for a descriptor.
void fds_open(void)
{
    int ends[2], sockets[2];

    own_fds[0] = memfd_create("walker", MFD_ALLOW_SEALING);
    if (write(own_fds[0], "0123456789abcdef", 16) != 16 || pipe2(ends, O_NONBLOCK) ||
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sockets))
        perror("descriptors");
    own_fds[1] = ends[0];
    own_fds[2] = ends[1];
    own_fds[3] = sockets[0];
    own_fds[4] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    own_fds[5] = eventfd(1, EFD_NONBLOCK);
    own_fds[6] = epoll_create1(0);
    own_fds[7] = open(".", O_RDONLY | O_DIRECTORY);
}

// ---- Values ----------------------------------------------------------------

static u64 state;

static u64 draw(u64 below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % below;
}

#define PICK(array) (array)[draw(sizeof(array) / sizeof((array)[0]))]

// Who is signalled or changed is decided by the number: it is nobody's.
static bool names_a_process(const char *name)
{
    static const char *const names[] = {"pid", "tid", "tgid", "pgid", "who", "target_pid", "upid"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };

    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static u64 good_value(const SyscallArg *a, u32 index)
{
    static const u64 numbers[] = {0, 1, 2, 3, 8, 0xffffffff, ~0ull};
    static const u64 sizes[] = {0, 1, 8, 16, 64, 100};
    enum { NOBODY = 0x3fffff00 };

    if (a->name && names_a_process(a->name))
        return NOBODY;
    switch (a->kind) {
    case ARG_INT:
    case ARG_FLAGS:
    case ARG_LONG: return PICK(numbers);
    case ARG_SIZE: return PICK(sizes);
    case ARG_DIRFD: return draw(2) ? (u64)AT_FDCWD : (u64)own_fds[7];
    case ARG_FD: return draw(8) ? (u64)PICK(own_fds) : ~0ull;
    case ARG_PTR: return place_address(PLACE_SCRATCH, index);
    default: return syscall_kind_is_pointer(a->kind) ? place_address(PLACE_GOOD, index) : 0;
    }
}

// The operation that the row is about.
static void select_row(const Row *row, Question *question)
{
    if (!row->sub)
        return;
    if (row->sub->is_pair) {
        question->args[row->sub->arg] = row->key >> 32;
        question->args[row->sub->arg + 1] = (u32)row->key;
    } else {
        question->args[row->sub->arg] = row->key << row->sub->shift;
    }
}

static Question base_question(const Row *row)
{
    Question question = { .undefined = -1, .content = (Content)draw(CONTENTS) };

    for (u32 i = 0; i < SYSCALL_ARGS; i++)
        question.args[i] = good_value(&row->row->args[i], i);
    select_row(row, &question);
    snprintf(question.text, sizeof(question.text), "in order");
    return question;
}

// ---- What may be wrong with them -------------------------------------------

static const char *const place_names[PLACES] = {
    [PLACE_GOOD] = "good",         [PLACE_UNDEFINED] = "undefined", [PLACE_NOACCESS] = "not owned",
    [PLACE_CONSTANT] = "constant", [PLACE_EDGE] = "at the edge",    [PLACE_HOLE] = "not mapped",
};

typedef struct List {
    Question *questions;
    u32 count;
} List;

static void add(List *list, const Question *question)
{
    if (list->count < QUESTIONS_MAX)
        list->questions[list->count++] = *question;
}

static void add_pointers(List *list, const Question *base, u32 arg)
{
    static const Place places[] = {PLACE_UNDEFINED, PLACE_NOACCESS, PLACE_CONSTANT, PLACE_EDGE,
                                   PLACE_HOLE};
    static const u64 nowhere[] = {0, ~0ull};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        Question question = *base;
        question.args[arg] = place_address(places[i], arg);
        snprintf(question.text, sizeof(question.text), "argument %u is %s", arg,
                 place_names[places[i]]);
        add(list, &question);
    }
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        Question question = *base;
        question.args[arg] = nowhere[i];
        snprintf(question.text, sizeof(question.text), "argument %u is %ld", arg, (long)nowhere[i]);
        add(list, &question);
    }
}

static void add_wrong(List *list, const Row *row, const Question *base)
{
    for (u32 i = 0; i < SYSCALL_ARGS; i++) {
        const SyscallArg *a = &row->row->args[i];
        if (a->kind == ARG_NONE)
            continue;
        Question question = *base;
        question.undefined = (i32)i;
        snprintf(question.text, sizeof(question.text), "argument %u has no defined value", i);
        add(list, &question);
        if (syscall_kind_is_pointer(a->kind))
            add_pointers(list, base, i);
    }
}

u32 questions_make(const Row *row, u64 seed, Question questions[QUESTIONS_MAX])
{
    enum { BASES = 4 };
    List list = { questions, 0 };

    state = seed * 0x9e3779b97f4a7c15ull + row->nr * 0x10001 + row->key;
    for (u32 i = 0; i < BASES; i++) {
        Question base = base_question(row);
        add(&list, &base);
        if (i >= 2)
            continue;
        add_wrong(&list, row, &base);
    }
    return list.count;
}
