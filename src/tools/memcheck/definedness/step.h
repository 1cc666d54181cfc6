// SPDX-License-Identifier: MIT
//
// What definedness_prepare() leaves for definedness_run(): an instruction taken apart, its
// operands as places in a Definedness. Private to the definedness files.
#ifndef MUNINN_TOOLS_MEMCHECK_DEFINEDNESS_STEP_H
#define MUNINN_TOOLS_MEMCHECK_DEFINEDNESS_STEP_H

#include "tools/memcheck/definedness/definedness.h"

typedef enum Rule {
#define RULE_KIND(rule, family, precision, values, blind) RULE_##rule,
#include "tools/memcheck/definedness/rules.def"
#undef RULE_KIND
    RULE_COUNT
} Rule;

typedef enum PlaceKind {
    PLACE_NONE,
    PLACE_GPR,
    PLACE_VECTOR,
    PLACE_MASK,
    PLACE_MMX,       // the register with that number, physical
    PLACE_X87,       // the register that far from the top of the stack
    PLACE_MXCSR,
    PLACE_ENVIRONMENT, // of the x87: its words, as one
    PLACE_MEMORY,    // the explicit operand
    PLACE_IMMEDIATE,
} PlaceKind;

// Where the V bits of an operand are, and its value.
typedef struct Place {
    u8 kind;
    u8 number; // of the register
    u8 shift;  // 8 for ah, bh, ch, dh
    u8 size;   // bytes; of memory, what this operand covers
    u16 at;    // offset of its V bytes in Definedness
    u8 broadcast; // bytes of the element that memory gives to every lane; 0: it gives all
    u8 written_upper; // bytes that a write sets, those beyond `size` to defined zeros
} Place;

enum { SOURCES_MAX = 4, PLACES_MAX = 4, PERMUTATION_BYTES = 64 };

// Entries of a permutation: byte 0 … 63 of source 0, 64 … 127 of source 1, or a defined zero.
#define PERMUTE_ZERO 0xff

// The patterns of rule PERMUTE, its first argument; the second is the size of an element.
typedef enum Pattern {
    PATTERN_NONE,
    PATTERN_COPY, PATTERN_MOVE_LOW, PATTERN_SET_LOW, PATTERN_SET_HIGH, PATTERN_HIGH_TO_LOW,
    PATTERN_LOW_TO_HIGH, PATTERN_EVEN, PATTERN_ODD, PATTERN_UNPACK_LOW, PATTERN_UNPACK_HIGH,
    PATTERN_SHUFPS, PATTERN_SHUFPD, PATTERN_PERMIL_PD, PATTERN_SHUFFLE, PATTERN_SHUFFLE_LOW,
    PATTERN_SHUFFLE_HIGH, PATTERN_ALIGN, PATTERN_ALIGN_ALL, PATTERN_BYTES_LEFT,
    PATTERN_BYTES_RIGHT, PATTERN_INSERT, PATTERN_EXTRACT, PATTERN_INSERTPS, PATTERN_BROADCAST,
    PATTERN_PERM128, PATTERN_PERM_QUARTERS, PATTERN_SHUF128, PATTERN_BLEND, PATTERN_WIDEN,
    PATTERN_TRUNCATE,
} Pattern;

typedef enum LaneKind {
    LANES_NONE,    // as a whole, or not at all
    LANES_VECTOR,  // where the lanes of source 0 have their top bits set
    LANES_DI,      // the same of source 1, bytes at rdi
    LANES_MASK,    // where the mask register has ones
    LANES_PACKED,  // as many as it has ones, one behind the other
    LANES_GATHER, LANES_SCATTER, // where the mask says, each at an index
} LaneKind;

// What rule VCOMPARE asks of two lanes, its second argument; by a predicate, or whether there
// is a bit that both have.
typedef enum Comparison {
    COMPARE_SIGNED, COMPARE_UNSIGNED, COMPARE_ANY_ONE, COMPARE_NO_ONE,
} Comparison;

// The predicates: equal, less, less or equal, false, and 4 more for the opposite of each.
enum { PREDICATE_EQUAL, PREDICATE_LESS, PREDICATE_LESS_EQUAL, PREDICATE_FALSE, PREDICATE_NOT };

typedef enum MaskMode { MASK_NONE, MASK_MERGE, MASK_ZERO } MaskMode;

struct DefinednessStep {
    MemberSet reads, address, writes;
    u64 immediate;
    u32 needs_vectors;
    u16 memory_size;
    u8 memory_reads, memory_writes;
    u16 flags_tested, flags_written; // at their places in eflags
    u16 flags_cleared;               // of those written: to a constant, so defined
    u8 rule;
    u8 lane;                         // the rule's argument: bytes of a lane, or a condition
    u8 lane_to;                      // of the destination, where it differs
    u8 source_count, place_count;
    u8 mask, mask_mode;              // the register; MaskMode
    u8 mask_lane;                    // bytes that a mask bit stands for
    u8 mask_scalar;                  // only the lowest of its bits counts
    u8 mask_lanes;                   // so many do: above are zeros; 0: as many as there is room for
    u8 mask_knows_values;            // what is moved is known, and what it is merged with
    u8 string, element;              // StringKind; bytes
    u8 string_flags;
    u8 x87_number, x87_to_number;    // st(i) of the operand; whether the result goes there
    u8 size;                         // of the operation, in bytes
    u8 lanes;                        // LaneKind: how it touches memory
    u8 broadcasts;                   // one element of memory goes to all lanes
    u8 tuples;                       // or several, over and over
    u8 compared;                     // what it loads is only compared (lookahead.h)
    u8 constant;                     // xor r, r and its like: whatever r was
    Place destination;               // the first that is written
    Place source[SOURCES_MAX];       // explicit operands and implicit registers that are read
    Place other[PLACES_MAX];         // further ones that are written
    u8 permutation[PERMUTATION_BYTES];
};

_Static_assert(sizeof(struct DefinednessStep) <= DEFINEDNESS_STEP_BYTES, "a step is kept by size");

#define STRING_READS_SI 1
#define STRING_USES_DI 2
#define STRING_WHILE_EQUAL 4
#define STRING_ADDRESS32 8
#define STRING_REPEATED 16

// Flags at their places in eflags.
enum {
    CF = 1 << 0, PF = 1 << 2, AF = 1 << 4, ZF = 1 << 6, SF = 1 << 7, DF = 1 << 10, OF = 1 << 11,
    FLAGS_STATUS = CF | PF | AF | ZF | SF | OF,
};

// ---------------------------------------------------------------------- at translation
// What a mnemonic's row says.
typedef struct RuleRow {
    u8 rule, lane, lane_to;
} RuleRow;
RuleRow definedness_row(ZydisMnemonic mnemonic);
// The name and claim of a rule, for tests and listings.
const char *definedness_rule_name(u32 rule);
bool definedness_rule_is_exact(u32 rule);
// The place of an operand, and the member that a place is part of.
// `legacy`: what is beyond the register's part stays as it is.
Place definedness_register(ZydisRegister reg, bool legacy);
Place definedness_place(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op);
MemberSet definedness_member(const Place *place);

// permute.c: fills step->permutation for a rule that moves bytes by a
// pattern known from the instruction. False: no such pattern.
bool definedness_permutation(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                             DefinednessStep *step);

void definedness_state_init(void); // state_hot.c: asks the processor

// ------------------------------------------------------------------------- at run time
// A step under way.
typedef struct Running {
    const DefinednessStep *step;
    Definedness *d;
    const DefinednessValues *values;
    u32 events;
    bool unreadable; // memory was to be read for its value and could not be
} Running;

// A number whose bits are known or not: value is right where v is 0.
typedef struct Known {
    u64 value, v;
} Known;

// Words within bytes, wherever they start.
typedef u16 Any16 __attribute__((aligned(1), may_alias));
typedef u32 Any32 __attribute__((aligned(1), may_alias));
typedef u64 Any64 __attribute__((aligned(1), may_alias));

// Some bytes of V bits.
typedef struct Bytes {
    _Alignas(8) u8 at[64];
} Bytes;

// places_hot.c
u64 place_v(Running *r, const Place *place);       // at most 8 bytes
u64 place_value(Running *r, const Place *place);   // at most 8 bytes
Known place_known(Running *r, const Place *place);
void place_set_v(Running *r, const Place *place, u64 v);
void place_bytes_v(Running *r, const Place *place, Bytes *ret);    // all 64, zeros beyond its size
void place_bytes_value(Running *r, const Place *place, Bytes *ret);
void place_set_bytes(Running *r, const Place *place, const Bytes *v);
bool place_any(Running *r, const Place *place);
void place_fill(Running *r, const Place *place, bool undefined);
u8 *place_hidden(GuestAddr address, u32 size);     // shadow of memory, or NULL
u64 place_hidden_v(GuestAddr address, u32 size);
void place_set_hidden_v(GuestAddr address, u32 size, u64 v);
u32 place_top(void);                               // of the x87 stack

void rule_coarse(Running *r);
// Whether it is undefined which lanes are touched; the member that says which.
bool definedness_lanes_undefined(const DefinednessStep *step, const Definedness *d,
                                 MemberSet *ret_mask);
// Stores the V bytes of a vector result, as far as the mask lets it.
void rule_finish(Running *r, Bytes *v);
// The same, where the value of the result may be known.
void rule_finish_moved(Running *r, Bytes *v, const Bytes *value);
// The value of a mask register of the client's, as far as that many lanes need.
u64 rule_mask_value(u32 number, u32 lanes);
bool rule_condition(Running *r, u32 condition);    // true: it is undefined
// The families of rules, a file each.
void family_general(Running *r); // general_hot.c: coarse, branches, conditions
void family_move(Running *r);    // move_hot.c
void family_integer(Running *r); // integer_hot.c
void family_bits(Running *r);    // bits_hot.c: shifts, counts, fields
void family_vector(Running *r);  // vector_hot.c: lanes
void family_state(Running *r);   // state_hot.c: xsave and xrstor
void family_x87(Running *r);     // x87_hot.c
void family_shuffle(Running *r); // shuffle_hot.c: bytes that change places

static inline u64 mask_of(u32 bytes)
{
    return bytes >= 8 ? ~0ull : (1ull << bytes * 8) - 1;
}

// All bits from the lowest that is set upwards.
static inline u64 left_of_lowest(u64 v)
{
    return v | (0 - v);
}

static inline u64 all_if(bool undefined)
{
    return 0 - (u64)undefined;
}

static inline u64 sign_extend(u64 v, u32 bytes)
{
    u32 up = 64 - bytes * 8;
    return (u64)((i64)(v << up) >> up);
}

#endif
