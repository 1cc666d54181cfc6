// SPDX-License-Identifier: MIT
//
// What findings.def becomes in C, and kinds of findings as data: a kind that a tool brings when it
// is loaded is described by the same structures as those of the table, and the monitor knows every
// kind only from the description that the engine sends it when they connect.
//
//   tool                                         monitor
//   .access = {.size = 4}                        fields_access(&values)->size
//   fields_encode() ── words and texts ── wire ──▶ fields_decode()
//
// What must stay true
//   F1  All fields are 8 bytes: a number, or a pointer to a text. So a structure is also an array
//       of words in the order of its fields, and a shape that the table lacks can be filled in as
//       such an array.
//   F2  What comes over the wire is hostile: fields_decode() makes of any words and texts values
//       that can be read, with texts that end.
#ifndef MUNINN_WIRE_FINDINGS_H
#define MUNINN_WIRE_FINDINGS_H

#include "base/types.h"

enum {
    FIELDS_MAX = 16,           // of a shape
    FIELD_TEXTS_BYTES = 4096,  // of all texts of a finding or a part; more is cut off
};

// How a number is shown.
typedef enum FieldType {
    FIELD_NUMBER,     // 4096
    FIELD_AMOUNT,     // 4,096
    FIELD_SIGNED,     // -1
    FIELD_CHANGE,     // +4,096
    FIELD_ADDRESS,    // 0x4a48044
    FIELD_FLAG,       // 0 or 1
    FIELD_CHOICE,     // the word that it chooses
    FIELD_PROTECTION, // PROT_ bits: r-x
    FIELD_TEXT,
    FIELD_TYPES
} FieldType;

typedef struct FieldDescription {
    const char *name;
    FieldType type;
    const char *words; // of a choice: "before|inside|after"
} FieldDescription;

typedef struct FieldShape {
    const char *name;
    const FieldDescription *fields;
    u32 count; // FIELDS_MAX at most
} FieldShape;

// ------------------------------------------------------------------ the table in C

typedef enum ShapeNumber {
#define SHAPE(NAME, name, Name, ...) SHAPE_##NAME,
#include "wire/findings.def"
    SHAPE_COUNT
} ShapeNumber;

typedef enum FindingKind {
#define KIND(NAME, shape, ...) KIND_##NAME,
#include "wire/findings.def"
    KIND_COUNT // kinds that a tool brings follow
} FindingKind;

typedef enum PartKind {
#define PART(NAME, shape, ...) PART_##NAME,
#include "wire/findings.def"
    PART_COUNT // parts that a tool brings follow
} PartKind;

#define FIELD_C_NUMBER u64
#define FIELD_C_AMOUNT u64
#define FIELD_C_SIGNED i64
#define FIELD_C_CHANGE i64
#define FIELD_C_ADDRESS u64
#define FIELD_C_FLAG u64
#define FIELD_C_PROTECTION u64
#define FIELD_C_TEXT const char *
#define FIELD(type, name, about) FIELD_C_##type name;
#define CHOICE(name, words, about) u64 name;
#define SHAPE(NAME, name, Name, ...) \
    typedef struct Fields##Name {    \
        __VA_ARGS__                  \
    } Fields##Name;
#include "wire/findings.def"
#undef FIELD
#undef CHOICE

typedef union AnyFields {
    u64 words[FIELDS_MAX];
#define SHAPE(NAME, name, Name, ...) Fields##Name name;
#include "wire/findings.def"
} AnyFields;

// FieldsBlock.relation and .state
enum { RELATION_BEFORE, RELATION_INSIDE, RELATION_AFTER };
enum { STATE_ALLOCATED, STATE_FREED, STATE_CLIENT_DEFINED };
// FieldsSection.section
enum { SECTION_TEXT, SECTION_DATA, SECTION_BSS };

// ----------------------------------------------------------------------- descriptions

// Templates are sentences with fields in braces; findings.def says how.
typedef struct KindDescription {
    const char *id;          // "invalid-read": lower case, stable for ever
    const char *family;      // who finds it, as suppression files call it: "Memcheck"
    const char *xml;         // <kind> of the XML protocol; NULL: the id
    const char *xml_4;       // the same in protocol 4, whose readers end at a kind that they do not
                             // know; NULL: protocol 4 leaves such findings to the text
    const char *suppression; // template: the kind in suppression files; NULL: the id
    const char *suppression_extra; // template: the line behind it; NULL: there is none
    const char *leak_kind;   // the word of match-leak-kinds; NULL: it is no leak
    const char *level;       // error, warning or note; NULL: error
    const char *title;       // one line about the kind, for lists; NULL: the id
    const char *sentence;    // template: the headline
    const char *help;        // where people can read more; NULL: nowhere
    const FieldShape *shape; // what it carries; NULL: nothing
    u32 number;              // on the wire; given when it is added
} KindDescription;

typedef struct PartDescription {
    const char *id;          // "address-block"
    const char *sentence;    // template; "": only a stack
    const char *place;       // template: over the source that its stack leads to; NULL:
                             // "created at"
    const FieldShape *shape; // NULL: nothing
    u32 number;
} PartDescription;

// NULL if there is none of this number in the table.
const FieldShape *shape_in_table(u32 number);
const KindDescription *kind_in_table(u32 number);
const PartDescription *part_in_table(u32 number);
// The one with this id; NULL: none.
const KindDescription *kind_of_id(const char *id);
const PartDescription *part_of_id(const char *id);
// The shape of the table that has this name and these very fields; NULL: none.
const FieldShape *shape_like(const FieldShape *shape);

// --------------------------------------------------------------------------- the wire

// Puts the values as a record carries them: a word for each field, that of a text being where it
// begins in `texts`, plus 1, or 0 if there is none. Returns the size of the texts without the last
// zero. Callable from the cache.
size_t fields_encode(const FieldShape *shape, const AnyFields *fields, u64 ret_words[FIELDS_MAX],
                     char ret_texts[FIELD_TEXTS_BYTES]);

// Values as they came: those behind `count` were not sent, and are 0 or NULL.
typedef struct FieldValues {
    const FieldShape *shape; // of the table, if it is one of those
    u32 count;
    AnyFields any; // texts point into the record
} FieldValues;

// `texts` is the text of the record: `size` bytes and a zero.
void fields_decode(const FieldShape *shape, const u64 *words, size_t count, const char *texts,
                   size_t size, FieldValues *ret_values);
// Values that are there in C already.
FieldValues fields_of(ShapeNumber shape, AnyFields fields);

// fields_access(&values)->size; NULL if the values are of another shape.
#define SHAPE(NAME, name, Name, ...)                                              \
    static inline const Fields##Name *fields_##name(const FieldValues *values)    \
    {                                                                             \
        return values->shape == shape_in_table(SHAPE_##NAME) ? &values->any.name : NULL; \
    }
#include "wire/findings.def"

#endif
