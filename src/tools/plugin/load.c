// SPDX-License-Identifier: MIT
//
// Finds, checks and starts a tool that is a shared object, and gives it its options.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine/log/log.h"
#include "tools/plugin/plugin_internal.h"

const MuninnTool *plugin_description;
bool plugin_has_started;

static const char *tool_path;
static const OptionList *given; // "--name=value", of the tool
static bool is_taken[OPTIONS_LIST_MAX];

static const char *tool_name(void)
{
    const char *slash = tool_path ? strrchr(tool_path, '/') : NULL;
    return plugin_description ? plugin_description->name : slash ? slash + 1 : "the tool";
}

void plugin_refuse(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_refuse("%s: %s", tool_name(), text);
}

void plugin_needs_start(const char *function)
{
    if (plugin_has_started)
        plugin_refuse("%s may be called in muninn_tool_start() only", function);
}

// A fault in a callback, or in the tool's own code, is the tool's.
bool plugin_crashed(int sig, u64 host_pc, u64 address)
{
    Dl_info at = {0};
    bool is_known = dladdr((void *)host_pc, &at) && at.dli_fname;
    bool is_tools = is_known && tool_path && strcmp(at.dli_fname, tool_path) == 0;
    if (!plugin_callback && !is_tools)
        return false;
    const char *where = plugin_callback ? plugin_callback : "";
    const char *in = *where ? ", in a callback of " : "";
    if (sig == SIGABRT || (is_known && at.dli_sname && strcmp(at.dli_sname, "abort") == 0))
        log_note("the tool %s has called abort()%s%s", tool_name(), in, where);
    else
        log_note("the tool %s has crashed (signal %d at %s+0x%lx, address 0x%lx)%s%s", tool_name(),
                 sig, is_known ? at.dli_fname : "no known file",
                 host_pc - (is_known ? (u64)at.dli_fbase : 0), address, in, where);
    return true;
}

// The last one may be the client's once it runs.
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void on_early_crash(int sig, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    plugin_crashed(sig, (u64)uc->uc_mcontext.gregs[REG_RIP], (u64)info->si_addr);
    signal(sig, SIG_DFL);
    raise(sig);
}

// Before the engine's own handlers are there: what they were goes to `old`, and comes from there.
static void catch_early_crashes(struct sigaction *old, bool catches)
{
    struct sigaction act = {.sa_sigaction = on_early_crash, .sa_flags = SA_SIGINFO | SA_NODEFER};
    for (size_t i = 0; i < ARRAY_LEN(crash_signals); i++)
        sigaction(crash_signals[i], catches ? &act : &old[i], catches ? &old[i] : NULL);
    plugin_callback = catches ? "muninn_tool_start" : NULL;
}

void plugin_unblock_crashes(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i + 1 < ARRAY_LEN(crash_signals); i++)
        sigaddset(&set, crash_signals[i]);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void plugin_needs_outside(const ToolThread *thread, const char *function)
{
    if (plugin_thread(thread) && plugin_thread(thread)->is_inside)
        plugin_refuse("%s may not be called by a block or in a callback of allocations", function);
}

// -------------------------------------------------------------------- options

typedef enum OptionForm { OPTION_YES_OR_NO, OPTION_AS_NUMBER, OPTION_AS_TEXT } OptionForm;

typedef struct ToolOption {
    const char *name, *help;
    char fallback[64];
    OptionForm form;
} ToolOption;

static ToolOption *declared;
static size_t declared_count;

static void declare(const char *name, const char *help, OptionForm form, const char *fallback)
{
    plugin_needs_start("muninn_option");
    if (options_have(name))
        plugin_refuse("--%s is an option of Muninn's own: the tool never sees it", name);
    ToolOption *more = realloc(declared, (declared_count + 1) * sizeof(*declared));
    if (!more)
        plugin_refuse("no memory for its options");
    declared = more;
    declared[declared_count] = (ToolOption){.name = name, .help = help, .form = form};
    snprintf(declared[declared_count].fallback, sizeof(declared->fallback), "%s", fallback);
    declared_count++;
}

// The value that the user has given the option last, or NULL.
static const char *value_of(const char *name)
{
    const char *value = NULL;
    size_t length = strlen(name);
    for (u32 i = 0; i < given->count; i++) {
        const char *word = given->items[i] + strspn(given->items[i], "-");
        if (strncmp(word, name, length) != 0 || (word[length] && word[length] != '='))
            continue;
        is_taken[i] = true;
        value = word[length] ? word + length + 1 : "";
    }
    return value;
}

void muninn_option_bool(const char *name, bool *value, const char *help)
{
    declare(name, help, OPTION_YES_OR_NO, *value ? "yes" : "no");
    const char *text = value_of(name);
    if (!text)
        return;
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0 && *text)
        plugin_refuse("--%s=%s: yes or no", name, text);
    *value = strcmp(text, "no") != 0;
}

void muninn_option_number(const char *name, uint64_t *value, const char *help)
{
    char fallback[32], *end;
    snprintf(fallback, sizeof(fallback), "%lu", (unsigned long)*value);
    declare(name, help, OPTION_AS_NUMBER, fallback);
    const char *text = value_of(name);
    if (!text)
        return;
    errno = 0;
    u64 number = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-')
        plugin_refuse("--%s=%s: a number, decimal or with 0x", name, text);
    *value = number;
}

void muninn_option_text(const char *name, const char **value, const char *help)
{
    declare(name, help, OPTION_AS_TEXT, *value ? *value : "");
    const char *text = value_of(name);
    if (text)
        *value = text;
}

static void refuse_unknown_options(void)
{
    char known[512] = "";
    for (size_t i = 0; i < declared_count; i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof(known) - n, "%s--%s", i ? ", " : "", declared[i].name);
    }
    for (u32 i = 0; i < given->count; i++) {
        if (!is_taken[i] && strcmp(given->items[i], "--tool-help") != 0)
            plugin_refuse("it has no option %.*s; %s%s",
                          (int)strcspn(given->items[i], "="), given->items[i],
                          declared_count ? "it has " : "it has none", known);
    }
}

static void print_help(void)
{
    static const char *const value[] = {
        [OPTION_YES_OR_NO] = "yes|no", [OPTION_AS_NUMBER] = "NUMBER", [OPTION_AS_TEXT] = "TEXT",
    };
    printf("%s: %s\n", plugin_description->name, plugin_description->summary);
    for (size_t i = 0; i < declared_count; i++) {
        const ToolOption *o = &declared[i];
        printf("  --%s=%s\n        %s%s%s%s\n", o->name, value[o->form], o->help,
               o->fallback[0] ? " [" : "", o->fallback, o->fallback[0] ? "]" : "");
    }
    fflush(stdout);
    _exit(0);
}

static bool wants_help(void)
{
    for (u32 i = 0; i < given->count; i++) {
        if (strcmp(given->items[i], "--tool-help") == 0)
            return true;
    }
    return false;
}

// -------------------------------------------------------------------- loading

// dlerror() begins with the path, which the line has already.
static const char *load_error(void)
{
    const char *error = dlerror();
    size_t length = strlen(tool_path);
    if (!error)
        return "it cannot be loaded";
    if (strncmp(error, tool_path, length) == 0 && error[length] == ':')
        error += length + 1;
    return error + strspn(error, " ");
}

// The tool with its functions resolved: that of a library which is loaded already is put off, so it
// is loaded anew.
static void *open_for_good(void *lazy)
{
    dlclose(lazy);
    void *handle = dlopen(tool_path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        log_refuse("--tool=%s: %s", tool_path, load_error());
    plugin_description = dlsym(handle, "muninn_tool");
    return handle;
}

// The description first, with functions unresolved: what was built for another version may ask for
// functions that are not here, and the version says more.
static void *open_tool(void)
{
    void *handle = dlopen(tool_path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        log_refuse("--tool=%s: %s", tool_path, load_error());
    const MuninnTool *description = dlsym(handle, "muninn_tool");
    if (!description)
        log_refuse("--tool=%s: this is no tool: it has no MUNINN_TOOL(name, summary)", tool_path);
    if (description->api != MUNINN_TOOL_API)
        log_refuse("--tool=%s: it is made for version %u of the tool interface, and this is "
                   "version %u: build it again with this version's muninn/tool.h",
                   tool_path, description->api, MUNINN_TOOL_API);
    if (description->api_minor > MUNINN_TOOL_API_MINOR)
        log_refuse("--tool=%s: it is made for version %u.%u of the tool interface, and this is "
                   "version %u.%u: it needs a newer muninn",
                   tool_path, description->api, description->api_minor, MUNINN_TOOL_API,
                   MUNINN_TOOL_API_MINOR);
    return open_for_good(handle);
}

const Tool *plugin_start(const MuninnTool *description, int (*start)(void),
                         const OptionList *options)
{
    given = options;
    plugin_description = description;
    plugin_tool.name = description->name;
    plugin_tool.summary = description->summary;
    struct sigaction old[ARRAY_LEN(crash_signals)];
    catch_early_crashes(old, true);
    int result = start();
    catch_early_crashes(old, false);
    if (wants_help())
        print_help();
    refuse_unknown_options();
    if (result != 0)
        plugin_refuse("muninn_tool_start() has returned %d", result);
    plugin_tool.functions = plugin_functions;
    plugin_tool.function_count = plugin_function_count;
    plugin_has_started = true;
    return &plugin_tool;
}

const Tool *plugin_load(const char *path, const OptionList *options)
{
    tool_path = path;
    void *handle = open_tool();
    int (*start)(void) = NULL;
    *(void **)&start = dlsym(handle, "muninn_tool_start");
    if (!start)
        log_refuse("--tool=%s: it defines no muninn_tool_start()", path);
    return plugin_start(plugin_description, start, options);
}
