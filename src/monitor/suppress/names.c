// SPDX-License-Identifier: MIT
//
// Takes names apart by their text alone. Demangled names are no grammar that
// could be parsed for sure (operator<, decltype, lambdas), so every cut made
// here only adds a form: a wrong one matches no pattern that anybody writes.
#include "monitor/suppress/names.h"

#include <ctype.h>
#include <string.h>

#define HASH_DIGITS 16

static NameForm form_of(const char *text)
{
    return (NameForm){ text, strlen(text) };
}

static bool starts_with(NameForm name, const char *start)
{
    size_t size = strlen(start);

    return name.size >= size && memcmp(name.text, start, size) == 0;
}

static bool ends_with(NameForm name, const char *end)
{
    size_t size = strlen(end);

    return name.size >= size && memcmp(name.text + name.size - size, end, size) == 0;
}

static bool is_hash(const char *digits)
{
    for (size_t i = 0; i < HASH_DIGITS; i++) {
        if (!isdigit((u8)digits[i]) && !(digits[i] >= 'a' && digits[i] <= 'f'))
            return false;
    }
    return true;
}

NameForm name_without_hash(NameForm name)
{
    const size_t tail = strlen("::h") + HASH_DIGITS;

    if (name.size > tail && memcmp(name.text + name.size - tail, "::h", 3) == 0 &&
        is_hash(name.text + name.size - HASH_DIGITS))
        name.size -= tail;
    return name;
}

const char *name_mangled_hash(NameForm name)
{
    const size_t tail = strlen("17h") + HASH_DIGITS + strlen("E");

    name = name_without_clone(name);
    if (name.size <= tail || name.text[name.size - 1] != 'E')
        return NULL;
    const char *start = name.text + name.size - tail;
    return memcmp(start, "17h", 3) == 0 && is_hash(start + 3) ? start + 3 : NULL;
}

NameForm name_without_version(NameForm name)
{
    const char *at = name.size ? memchr(name.text + 1, '@', name.size - 1) : NULL;

    if (at)
        name.size = (size_t)(at - name.text);
    return name;
}

// Suffixes by which compilers tell copies of a function apart. All of them are
// followed by a number or nothing.
static const char *const clone_suffixes[] = {
    ".llvm",     ".constprop", ".isra", ".part",   ".cold",    ".lto_priv",
    ".localalias", ".clone",   ".str",  ".resolver", ".ifunc", ".warm",
};

// The end of the name without its last suffix, if that is one of the above.
static size_t cut_clone_suffix(NameForm name)
{
    size_t end = name.size;

    while (end > 0 && isdigit((u8)name.text[end - 1]))
        end--;
    if (end < name.size && end > 0 && name.text[end - 1] == '.')
        end--;
    else
        end = name.size;
    for (size_t i = 0; i < ARRAY_LEN(clone_suffixes); i++) {
        NameForm head = { name.text, end };
        size_t size = strlen(clone_suffixes[i]);

        if (end > size && ends_with(head, clone_suffixes[i]))
            return end - size;
    }
    return name.size;
}

NameForm name_without_clone(NameForm name)
{
    for (;;) {
        size_t size = cut_clone_suffix(name);

        if (size == name.size)
            return name;
        name.size = size;
    }
}

// What may follow the parameters.
static const char *const qualifiers[] = { " const", " volatile", " &", " &&", " noexcept" };

static NameForm without_qualifiers(NameForm name)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < ARRAY_LEN(qualifiers); i++) {
            if (ends_with(name, qualifiers[i])) {
                name.size -= strlen(qualifiers[i]);
                changed = true;
            }
        }
        // gcc's clones: f(int) [clone .part.0]
        const char *clone = memmem(name.text, name.size, " [clone ", 8);
        if (clone && name.text[name.size - 1] == ']') {
            name.size = (size_t)(clone - name.text);
            changed = true;
        }
    }
    return name;
}

// Where the parenthesis was opened that the name ends with; 0 if there is none.
static size_t open_parenthesis(NameForm name)
{
    size_t depth = 0;

    for (size_t i = name.size; i-- > 0;) {
        if (name.text[i] == ')')
            depth++;
        else if (name.text[i] == '(' && --depth == 0)
            return i;
        if (depth == 0)
            return 0;
    }
    return 0;
}

static bool is_word_char(char c)
{
    return isalnum((u8)c) || c == '_' || c == '$';
}

// Whether "operator", as a word, stands at this place.
static bool is_operator_at(NameForm name, size_t at)
{
    const size_t size = strlen("operator");

    return name.size - at >= size && memcmp(name.text + at, "operator", size) == 0 &&
           (at == 0 || !is_word_char(name.text[at - 1])) &&
           (at + size == name.size || !is_word_char(name.text[at + size]));
}

// Brackets of all kinds count alike; the > of -> is none.
static int bracket_change(NameForm name, size_t at)
{
    switch (name.text[at]) {
    case '<':
    case '(':
    case '[':
    case '{':
        return 1;
    case '>':
        return at > 0 && name.text[at - 1] == '-' ? 0 : -1;
    case ')':
    case ']':
    case '}':
        return -1;
    default:
        return 0;
    }
}

// Cuts what stands before the last blank outside of brackets: a return type, or
// "non-virtual thunk to". An operator's own blanks stay.
static NameForm without_return_type(NameForm name)
{
    size_t start = 0;
    i64 depth = 0;

    for (size_t i = 0; i < name.size; i++) {
        if (depth == 0 && is_operator_at(name, i))
            break;
        depth += bracket_change(name, i);
        if (depth == 0 && name.text[i] == ' ' && i + 1 < name.size)
            start = i + 1;
    }
    return (NameForm){ name.text + start, name.size - start };
}

NameForm name_without_parameters(NameForm name)
{
    NameForm cut = without_qualifiers(name);
    size_t open = open_parenthesis(cut);

    // "operator()" without its parameters ends in a parenthesis, too; a blank before
    // one means decltype or a pointer to a function.
    if (open > 0 && cut.text[open - 1] != ' ' &&
        !ends_with((NameForm){ cut.text, open }, "operator"))
        cut.size = open;
    else if (open == 0)
        cut = name;
    cut = without_return_type(cut);
    return cut.size ? cut : name;
}

// The size of "operator" and its symbol, whose < and > are no brackets.
static size_t operator_size(NameForm name, size_t at)
{
    size_t end = at + strlen("operator");

    if (name.size - end >= 2 &&
        (memcmp(name.text + end, "()", 2) == 0 || memcmp(name.text + end, "[]", 2) == 0))
        return end + 2 - at;
    while (end < name.size && name.text[end] && strchr("<>=-", name.text[end]))
        end++;
    return end - at;
}

size_t name_replace_templates(NameForm name, const char *filler, char *buffer)
{
    size_t filler_size = strlen(filler), size = 0, depth = 0;

    for (size_t i = 0; i < name.size; i++) {
        if (depth == 0 && is_operator_at(name, i)) {
            size_t whole = operator_size(name, i);

            memcpy(buffer + size, name.text + i, whole);
            size += whole;
            i += whole - 1;
        } else if (name.text[i] == '<' && i > 0) {
            // Rust writes f::<T> where C++ writes f<T>. A < at the very start is Rust's
            // <Type as Trait>, which is no argument list.
            if (depth++ > 0)
                continue;
            if (!filler_size && size >= 2 && memcmp(buffer + size - 2, "::", 2) == 0)
                size -= 2;
            memcpy(buffer + size, filler, filler_size);
            size += filler_size;
        } else if (depth > 0) {
            if (name.text[i] == '>' && name.text[i - 1] != '-')
                depth--;
        } else {
            buffer[size++] = name.text[i];
        }
    }
    return size;
}

static const char *const below_main[] = {
    "(below main)", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl",
    "generic_start_main", "_start",
};

bool name_is_below_main(NameForm name)
{
    name = name_without_version(name_without_clone(name));
    for (size_t i = 0; i < ARRAY_LEN(below_main); i++) {
        if (name.size == strlen(below_main[i]) && starts_with(name, below_main[i]))
            return true;
    }
    return false;
}

static void add_form(NameForms *forms, NameForm form)
{
    if (form.size == 0 || forms->count == NAME_FORMS_MAX)
        return;
    for (size_t i = 0; i < forms->count; i++) {
        if (forms->forms[i].size == form.size &&
            memcmp(forms->forms[i].text, form.text, form.size) == 0)
            return;
    }
    forms->forms[forms->count++] = form;
}

static void add_without_templates(NameForms *forms, NameForm name, Arena *arena)
{
    if (!memchr(name.text, '<', name.size))
        return;
    char *buffer = arena_alloc(arena, name.size * 2, 1);
    if (buffer)
        add_form(forms, (NameForm){ buffer, name_replace_templates(name, "", buffer) });
}

// The demangled name as it is without trimming: some people paste that.
static void add_with_hash(NameForms *forms, NameForm name, const char *hash, Arena *arena)
{
    char *buffer = arena_alloc(arena, name.size + 3 + HASH_DIGITS, 1);

    if (!buffer)
        return;
    memcpy(buffer, name.text, name.size);
    memcpy(buffer + name.size, "::h", 3);
    memcpy(buffer + name.size + 3, hash, HASH_DIGITS);
    add_form(forms, (NameForm){ buffer, name.size + 3 + HASH_DIGITS });
}

static void add_function(NameForms *forms, NameForm function, Arena *arena)
{
    add_form(forms, function);
    function = name_without_hash(name_without_clone(function));
    add_form(forms, function);
    NameForm bare = name_without_parameters(function);
    add_form(forms, bare);
    add_without_templates(forms, bare, arena);
}

void names_of_frame(const Frame *frame, Arena *arena, NameForms *ret_forms)
{
    ret_forms->count = 0;
    ret_forms->has_version = false;
    if (frame->mangled && frame->mangled[0]) {
        NameForm mangled = form_of(frame->mangled);
        NameForm plain = name_without_version(mangled);

        add_form(ret_forms, mangled);
        add_form(ret_forms, plain);
        add_form(ret_forms, name_without_clone(plain));
        ret_forms->has_version = plain.size < mangled.size;
    }
    if (frame->function && frame->function[0]) {
        NameForm function = form_of(frame->function);
        NameForm plain = name_without_version(function);
        const char *hash = frame->mangled ? name_mangled_hash(form_of(frame->mangled)) : NULL;

        if (plain.size < function.size) {
            add_form(ret_forms, plain);
            ret_forms->has_version = true;
        }
        add_function(ret_forms, function, arena);
        if (hash)
            add_with_hash(ret_forms, name_without_hash(function), hash, arena);
    }
    if (ret_forms->count == 0)
        add_form(ret_forms, form_of(NAME_UNKNOWN));
    else if (name_is_below_main(ret_forms->forms[0]))
        add_form(ret_forms, form_of(below_main[0]));
}
