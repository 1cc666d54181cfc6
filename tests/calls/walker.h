// SPDX-License-Identifier: MIT
//
// Asks the kernel every call of the engine's table of system calls, with arguments that are in order
// and with ones that are not, and says of each what its row promises memcheck will find.
//
// The parts: rows.c lists the rows, with those of the sub-tables; questions.c makes the questions of
// a row; arena.c is the memory that arguments point to, of which is known what memcheck takes it
// for; promises.c reads the row; walker.c asks, each row in a process of its own.
#ifndef TESTS_CALLS_WALKER_H
#define TESTS_CALLS_WALKER_H

#include "base/types.h"
#include "engine/syscall/tables.h"

// ---- Rows ------------------------------------------------------------------

typedef struct Row {
    u64 nr;
    const SyscallRow *row;
    const SyscallSub *sub; // the table that the row stands in, NULL: that of the calls
    u64 key;               // there
    const char *excluded;  // why it is not asked, or NULL
    char name[64];         // "read", "ioctl(TCGETS)"
} Row;

enum { ROWS_MAX = 2048 };
extern Row rows[ROWS_MAX];
extern u32 row_count;
void rows_list(void);

// ---- The arena -------------------------------------------------------------

// Places of the arena, by what the kernel and memcheck see there.
typedef enum Place {
    PLACE_GOOD,      // mapped, and defined
    PLACE_UNDEFINED, // mapped, and not defined
    PLACE_NOACCESS,  // mapped, but no memory of the program's, as a freed block
    PLACE_CONSTANT,  // mapped read-only, and defined
    PLACE_EDGE,      // mapped and defined, and the next page is not mapped
    PLACE_HOLE,      // not mapped
    PLACE_SCRATCH,   // mapped; calls that change mappings get it
    PLACES,
} Place;

#define ARENA 0x2000000000ul
enum {
    PLACE_BYTES = 0x10000,  // from place to place
    PLACE_FILLED = 0x2000,  // of it there is memory
    STUB_BYTES = 32,
    QUESTIONS_MAX = 256,    // of a row
};
#define STUBS (ARENA + PLACES * PLACE_BYTES)

// What the memory holds before a question.
typedef enum Content {
    CONTENT_ZERO,
    CONTENT_TEXT,      // "f" in every eight bytes: a name, and a small number
    CONTENT_POINTERS,  // a pointer to good memory, 8, and again: iovecs
    CONTENT_DANGLING,  // the same with pointers to no memory
    CONTENTS,
} Content;

void arena_make(void);
void arena_fill(Content content);
u64 place_address(Place place, u32 arg);
// The place of the page that the address lies in; PLACE_HOLE where there is no memory.
Place place_of(u64 address);
// Natively: bytes that have changed and that `claimed` does not have. Under memcheck: bytes of
// PLACE_UNDEFINED that should be defined now and are not, or the other way round. False: none.
bool arena_find_difference(const u8 *claimed, char *ret_text, size_t size);
#define CLAIMED_BYTES (PLACES * PLACE_FILLED)
u8 *claim_of(u8 *claimed, u64 address); // NULL outside the arena

// ---- Questions -------------------------------------------------------------

typedef struct Question {
    u64 args[SYSCALL_ARGS];
    i32 undefined; // this argument's value is not defined; -1: all are
    Content content;
    char text[64]; // what is wrong with it
} Question;

// Descriptors that a question may name.
enum { OWN_FDS = 8 };
extern int own_fds[OWN_FDS];
void fds_open(void);

// The same for the same seed and row, whatever else is asked.
u32 questions_make(const Row *row, u64 seed, Question questions[QUESTIONS_MAX]);

// ---- Promises --------------------------------------------------------------

SyscallCall call_of(const Row *row, const Question *question);
// What memcheck has to find, with a bar behind each.
void promises_put(SyscallCall *call, const Question *question, char *text, size_t size);
// What the call has written, as its row says.
void claims_put(SyscallCall *call, u8 *claimed);

#endif
