// SPDX-License-Identifier: MIT
//
// The start of the tool: its options, the texts of the scripts, and where lines go.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/script.h"

MUNINN_TOOL("lua", "Runs scripts in Lua: --tool=FILE.lua and -e CODE.")

ScriptOptions script_options = {
    .max_instructions = 100000000, .max_memory = 64 << 20, .top = 30,
};

// ---------------------------------------------------------------------------- lines

static int output_fd = -1;

static void speak_line(const char *line, size_t length)
{
    if (output_fd < 0) {
        muninn_log("%.*s", (int)length, line);
        return;
    }
    char *whole = malloc(length + 1);
    if (!whole)
        return;
    memcpy(whole, line, length);
    whole[length] = '\n';
    // In one piece, so that lines of several threads do not mix.
    if (write(output_fd, whole, length + 1) < 0)
        muninn_log("--lua-output: %s", strerror(errno));
    free(whole);
}

void speak(const char *text)
{
    for (;;) {
        size_t length = strcspn(text, "\n"), shown = length;
        while (shown && text[shown - 1] == ' ')
            shown--;
        speak_line(text, shown);
        if (!text[length])
            return;
        text += length + 1;
    }
}

void speak_format(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    speak(text);
    free(text);
}

bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *again = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            again = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

// ---------------------------------------------------------------------------- system calls

const char *syscall_name(uint64_t number)
{
    static const char *names[CALLS_MAX];
    char text[64];

    if (number >= CALLS_MAX)
        return NULL;
    const char *known = __atomic_load_n(&names[number], __ATOMIC_ACQUIRE);
    if (known)
        return known;
    known = strdup(muninn_syscall_name(number, text, sizeof(text)));
    __atomic_store_n(&names[number], known, __ATOMIC_RELEASE);
    return known;
}

// ---------------------------------------------------------------------------- scripts

typedef struct Chunk {
    char name[300]; // as Lua wants it: "@file" or "=words"
    char *text;
    size_t length;
} Chunk;

static Chunk *chunks;
static uint64_t chunk_count;

static char *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0, length = 0, got = 1;

    while (file && got) {
        if (length + 1 >= room) {
            room = room ? 2 * room : 16384;
            char *more = realloc(text, room);
            if (!more)
                break;
            text = more;
        }
        got = fread(text + length, 1, room - length - 1, file);
        length += got;
    }
    if (!file || !text || ferror(file)) {
        muninn_log("%s: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    if (text)
        text[length] = '\0';
    *ret_length = length;
    return text;
}

// "@PATH" or "=CODE", as the launcher gives them.
static bool take_chunk(Chunk *chunk, uint64_t number, const char *value)
{
    if (value[0] == '@') {
        const char *slash = strrchr(value, '/');
        snprintf(chunk->name, sizeof(chunk->name), "@%s", slash ? slash + 1 : value + 1);
        chunk->text = read_file(value + 1, &chunk->length);
    } else {
        snprintf(chunk->name, sizeof(chunk->name), chunk_count == 1 ? "=-e" : "=-e %lu",
                 (unsigned long)number);
        chunk->text = strdup(value + 1);
        chunk->length = chunk->text ? strlen(chunk->text) : 0;
    }
    if (!chunk->text)
        return false;
    // The first line of a script that is a program of its own.
    if (chunk->text[0] == '#')
        memset(chunk->text, ' ', strcspn(chunk->text, "\n"));
    return true;
}

static bool take_chunks(void)
{
    muninn_option_number("lua-chunks", &chunk_count, "How many scripts there are.");
    if (chunk_count == 0 || chunk_count > 256) {
        muninn_log("there is no script: muninn --tool=FILE.lua or muninn -e CODE");
        return false;
    }
    chunks = calloc(chunk_count, sizeof(*chunks));
    for (uint64_t i = 0; i < chunk_count; i++) {
        const char *value = "";
        char *name;
        if (!chunks || asprintf(&name, "lua-chunk-%lu", (unsigned long)i + 1) < 0)
            return false;
        muninn_option_text(name, &value, "A script: the file of --tool, or the text of -e.");
        if (!*value || !take_chunk(&chunks[i], i + 1, value))
            return false;
    }
    return true;
}

bool scripts_load(State *state)
{
    lua_State *L = state->L;
    for (uint64_t i = 0; i < chunk_count; i++) {
        const Chunk *chunk = &chunks[i];
        state->spent = 0;
        if (luaL_loadbufferx(L, chunk->text, chunk->length, chunk->name, "t") == LUA_OK &&
            lua_pcall(L, 0, 0, 0) == LUA_OK)
            continue;
        const char *message = lua_tostring(L, -1);
        muninn_log("%s", message ? message : "the script has failed with an error without a text");
        return false;
    }
    return true;
}

static bool is_word_part(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool scripts_mention(const char *word)
{
    size_t length = strlen(word);
    for (uint64_t i = 0; i < chunk_count; i++) {
        const char *at = chunks[i].text;
        for (; (at = strstr(at, word)); at += length) {
            if ((at == chunks[i].text || !is_word_part(at[-1])) && !is_word_part(at[length]))
                return true;
        }
    }
    return false;
}

// ---------------------------------------------------------------------------- options

typedef struct ScriptOption {
    char *name;
    const char *value; // NULL: it was not given
    struct ScriptOption *next;
} ScriptOption;

static ScriptOption *own_options;
static const char was_not_given[] = "";

const char *script_option(const char *name, const char *fallback)
{
    static const char help[] = "An option of the script.";
    for (const ScriptOption *option = own_options; option; option = option->next) {
        if (strcmp(option->name, name) == 0)
            return option->value;
    }
    ScriptOption *option = calloc(1, sizeof(*option));
    char *shown = strdup(fallback);
    if (!option || !shown || !(option->name = strdup(name)))
        return NULL;
    option->value = shown;
    muninn_option_text(option->name, &option->value, help);
    if (option->value == shown)
        option->value = NULL;
    option->next = own_options;
    own_options = option;
    return option->value;
}

static void take_options(void)
{
    const char *output = was_not_given;
    muninn_option_number("lua-max-instructions", &script_options.max_instructions,
                         "A function of the script is stopped after so many instructions of Lua. "
                         "0: never.");
    muninn_option_number("lua-max-memory", &script_options.max_memory,
                         "Bytes that the Lua state of a thread may use, and again its tables.");
    muninn_option_number("lua-top", &script_options.top,
                         "Rows that are printed of a table; 0: all.");
    muninn_option_text("lua-output", &output,
                       "A file for what the script prints, without the tool's name in front. In "
                       "its name %p is the process id.");
    script_options.output = *output ? output : NULL;
}

static bool open_output(void)
{
    if (!script_options.output)
        return true;
    output_fd = muninn_open(script_options.output);
    if (output_fd < 0)
        muninn_log("--lua-output=%s: %s", script_options.output, strerror(-output_fd));
    return output_fd >= 0;
}

static void ask_needs(void)
{
    static const char *const named[] = {"name", "func", "caller", "probe", "stack"};
    unsigned needs = scripts_mention("stack") ? MUNINN_NEED_CONTEXTS : 0;
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        needs |= scripts_mention(named[i]) ? MUNINN_NEED_NAMES : 0;
    muninn_need(needs);
}

int muninn_tool_start(void)
{
    clock_start();
    take_options();
    if (!take_chunks() || !open_output())
        return 1;
    ask_needs();
    if (!state_create(NULL, true))
        return 1;
    events_ask();
    return 0;
}
