// SPDX-License-Identifier: MIT
//
// The tool that runs scripts in Lua. It is a plugin of include/muninn/tool.h and knows nothing else
// of Muninn.
//
//   script   the text that the user gave with --tool=FILE.lua and -e CODE
//   state    a Lua state. `home` loads the scripts first, which decides what the run is watched
//            for, and runs what the script wants to do with the sums. Each thread of the client has
//            a state of its own, in which the same scripts are loaded again.
//   probe    a call of wrap(), syscall() and so on in a script. Probe number n is the n-th call in
//            every state.
//   table    what count(), sum(), hist() and so on add to. Each state has its own; they move to
//            those of `home` when a thread ends, when the script wants to see them, and at the end.
//   place    an address or a call stack that gets its name when it is printed. In Lua it is a light
//            userdata, with its sort in the bits that no address has.
//
// What must stay true
//   L1  A thread's state is used by this thread alone, in callbacks of the engine.
//   L2  `home` is used by whoever holds home_lock.
//   L3  The tables of a state are changed by whoever holds their lock. Nobody calls Lua or the
//       engine meanwhile.
#ifndef MUNINN_LUA_SCRIPT_H
#define MUNINN_LUA_SCRIPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include <muninn/tool.h>

// ------------------------------------------------------------------------------------- tables

typedef enum TableKind {
    TABLE_COUNT, TABLE_SUM, TABLE_MIN, TABLE_MAX, TABLE_AVG, TABLE_HIST, TABLE_KINDS
} TableKind;

extern const char *const table_kind_names[TABLE_KINDS]; // the Lua functions

enum {
    BUCKETS = 65,     // of a histogram: below 0, 0, then [2^(n-2), 2^(n-1)) for bucket n
    KEY_BYTES = 1024, // of all parts of a key
};

// What has been added under one key.
typedef struct Cell {
    int64_t count, sum, min, max;
    uint64_t *buckets; // of histograms
} Cell;

typedef struct Entry {
    uint64_t hash;
    uint32_t length; // of the key
    uint8_t *key;    // its parts, as keys.c packs them; NULL: the entry is free
    Cell cell;
} Entry;

typedef struct Table {
    char *name;
    TableKind kind;
    size_t capacity, used; // of entries; the capacity is a power of two
    Entry *entries;
} Table;

typedef struct Tables {
    pthread_mutex_t lock;
    Table *items;
    size_t count;
    size_t bytes, bytes_max; // of memory that they take
} Tables;

void tables_init(Tables *tables, size_t bytes_max);
void tables_clear(Tables *tables, const char *name); // NULL: all
// NULL: there is none of that name.
Table *tables_find(Tables *tables, const char *name);
typedef enum TablesAdd { TABLES_ADDED, TABLES_NO_MEMORY, TABLES_OTHER_KIND } TablesAdd;
TablesAdd tables_add(Tables *tables, const char *name, TableKind kind, const uint8_t *key,
                     size_t length, int64_t value);
// All that `from` has becomes part of `to`. False: some of it is lost for want of memory.
bool tables_move(Tables *to, Tables *from);
const Cell *table_cell(const Table *table, const uint8_t *key, size_t length);
int64_t cell_value(const Cell *cell, TableKind kind);
void cell_join(Cell *into, const Cell *other);

// ------------------------------------------------------------------------------------- places

typedef enum PlaceSort {
    PLACE_LINE = 1, // "function (file.c:12)"
    PLACE_FUNCTION, // "function"
    PLACE_STACK,    // a context; and how many frames of it are wanted, 0: all
} PlaceSort;
enum { PLACE_SHIFT = 56, STACK_FRAMES_MAX = 48 };

static inline uint64_t place_make(PlaceSort sort, uint64_t value)
{
    return (uint64_t)sort << PLACE_SHIFT | value;
}

void place_push(lua_State *L, PlaceSort sort, uint64_t value);
// Writes its name to the buffer; where no names can be had, the address. Stacks are several lines,
// each behind a line break.
void place_text(bool has_names, uint64_t place, luaL_Buffer *text);

// A key, from the arguments first...last of a Lua function. Returns its length.
size_t key_pack(lua_State *L, int first, int last, uint8_t key[KEY_BYTES]);
// Appends the parts to the buffer, divided by commas; or pushes them as a list.
void key_text(bool has_names, const uint8_t *key, size_t length, luaL_Buffer *text);

// ------------------------------------------------------------------------------------- probes

typedef enum ProbeKind {
    PROBE_WRAP, PROBE_REPLACE, PROBE_SYSCALL, PROBE_ALLOC, PROBE_THREAD_START, PROBE_THREAD_END,
    PROBE_SIGNAL, PROBE_MODULE, PROBE_INSN, PROBE_BRANCH, PROBE_ACCESS, PROBE_COUNT_INSN,
    PROBE_EVERY, PROBE_AT_END, PROBE_KINDS
} ProbeKind;
extern const char *const probe_kind_names[PROBE_KINDS]; // the Lua functions

typedef enum Role { ROLE_BEFORE, ROLE_AFTER, ROLE_LEFT, ROLES } Role;

typedef struct Probe {
    ProbeKind kind;
    uint32_t index;
    char *object, *pattern; // object NULL: any
    char *title;            // wrap("malloc")
    bool has[ROLES];
    bool reads, writes;     // of access()
    uint64_t calls[8];      // of syscall(): bit n is number n
    bool is_off;            // atomic: it has failed too often
    uint32_t errors;        // atomic
    uint64_t last_error;    // atomic: a hash of its text, which is not said again
    uint32_t was_reached;   // atomic, 0 or 1
    uint64_t period_ns, next_ns; // of every(); home_lock
} Probe;

enum { PROBES_MAX = 1024, CALLS_MAX = 512 };
extern Probe *probes[PROBES_MAX];
extern uint32_t probe_count;
bool probes_have(ProbeKind kind);

// -------------------------------------------------------------------------------------- events

typedef enum EventKind {
    EVENT_NONE, EVENT_CALL, EVENT_RETURN, EVENT_LEFT, EVENT_SYSCALL, EVENT_SYSCALL_RETURN,
    EVENT_ALLOCATION, EVENT_INSN, EVENT_OTHER
} EventKind;

// What the functions elapsed(), caller() and so on speak of.
typedef struct Event {
    EventKind kind;
    const Probe *probe;
    MuninnCall *call;
    const MuninnSyscall *syscall;
    uint64_t pc;       // of allocations and instructions
    uint64_t start; // a stamp; of EVENT_RETURN, EVENT_LEFT and EVENT_SYSCALL_RETURN
    int saved;         // of these: a reference to what `before` has returned
    const char *word;  // for probe()
} Event;

// A call of a wrapped function that has not returned.
typedef struct Frame {
    uint64_t start;
    int saved;
    struct Frame *next; // of those that are free
} Frame;

// -------------------------------------------------------------------------------------- states

typedef struct State {
    lua_State *L;
    MuninnThread *thread; // NULL: home
    Tables tables;
    Event event;
    int (*functions)[ROLES]; // of each probe: references to Lua functions
    uint32_t loaded;         // probes that the scripts have asked for so far
    bool is_loading;
    bool is_running;         // in a protected call, which may run out of memory
    bool is_stopped;         // the bound on instructions was passed in this event
    uint64_t spent;          // instructions in this event
    size_t bytes;            // that Lua has allocated
    uint64_t syscall_start;
    Frame *free_frames;
    struct State *next; // states_lock
} State;

extern State *home;
extern pthread_mutex_t home_lock;

static inline State *state_of(lua_State *L)
{
    return *(State **)lua_getextraspace(L);
}

// With the scripts loaded. NULL: a script has failed, which has been said.
State *state_create(MuninnThread *thread, bool is_home);
void state_destroy(State *state);
// Pushes the probe's function. False: it is none of this state's, or has been switched off.
bool state_begin(State *state, const Probe *probe, Role role, const Event *event);
// Calls it with so many arguments. False: it has failed, which has been said; there are no results.
bool state_call(State *state, Probe *probe, int arguments, int results);
// The event is over.
void state_end(State *state);
// All tables of all states move to those of `home`. home_lock is held, or the client has ended.
void states_gather(void);
void states_fork_child(MuninnThread *thread);
// Runs what every() wants when it is due. Outside of blocks.
void states_tick(void);

// A line for each line of the text.
void speak(const char *text);
void speak_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_ns(void);
void clock_start(void);
// A moment, never 0; and how long ago that was.
uint64_t clock_stamp(void);
uint64_t clock_since_ns(uint64_t stamp);
// * stands for any text and ? for any character.
bool matches(const char *pattern, const char *text);

// ------------------------------------------------------------------------------------ the rest

typedef struct ScriptOptions {
    uint64_t max_instructions, max_memory, top;
    const char *output;
} ScriptOptions;
extern ScriptOptions script_options;

// Loads all scripts into the state. False: one has failed, which has been said.
bool scripts_load(State *state);
// The value of the script's option, as text; NULL: its default holds. In `home`, while it loads.
const char *script_option(const char *name, const char *fallback);

// The word stands in a script: what is needed for it costs something.
bool scripts_mention(const char *word);

void api_open_probes(lua_State *L);
void api_open_values(lua_State *L);
void api_open_tables(lua_State *L);

void events_ask(void); // tells the engine what the probes want
void insns_ask(void);
bool insns_count_moves(Tables *to); // what the counters have more than last time
void insns_fork_child(void);
// What the script wants at the end, or all tables.
void report_end(void);
// Prints a table, at most `top` rows of it (0: all); home's tables, home_lock is held.
void report_table(State *state, const Table *table, uint64_t top);
// Pushes its rows as a list.
void report_push_rows(State *state, const Table *table);

const char *syscall_name(uint64_t number); // NULL: it has none

#endif
