// SPDX-License-Identifier: MIT
//
// The options of `muninn top`, and its three ways: on a terminal until q, one look, or look
// after look for scripts.
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inspect/top/terminal.h"
#include "inspect/top/top.h"
#include "inspect/top/view.h"
#include "monitor/control/control.h"

enum { EXIT_REFUSED = 1, ROWS_DEFAULT = 20 };

static const char usage[] =
    "usage: muninn top [options] PID\n"
    "\n"
    "Shows what a program that runs under --tool=massif holds, live. `muninn ps` lists programs.\n"
    "\n"
    "    --sort=ORDER        bytes, growth, temporary or allocations [bytes]\n"
    "    --interval=SECONDS  between two looks [1]\n"
    "    --once              look once, over one interval, print and end\n"
    "    --batch             print every look, one after the other\n"
    "    --count=N           end after so many [no end]\n"
    "    --rows=N            so many contexts, when printing [20]\n"
    "    --json              an object on a line for every look; with --once or --batch\n"
    "\n"
    "Keys: q quit, h help, b g t a sort, arrows PgUp PgDn Home End move, Enter the stack,\n"
    "p pause, + - faster and slower.\n";

typedef struct Options {
    i32 pid;
    TopOrder order;
    double interval_s;
    u64 count; // 0: no end
    u32 rows;
    bool once, batch, json;
} Options;

// --------------------------------------------------------------------- options

static const char *option_value(const char *word, const char *name)
{
    size_t length = strlen(name);

    return strncmp(word, name, length) == 0 ? word + length : NULL;
}

static bool parse_whole(const char *text, u64 most, u64 *ret_number)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < 1 || number > most)
        return false;
    *ret_number = number;
    return true;
}

static bool parse_interval(const char *text, double *ret_seconds)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds >= 0.05) || seconds > 86400)
        return false;
    *ret_seconds = seconds;
    return true;
}

static bool parse_order(const char *text, TopOrder *ret_order)
{
    for (int i = 0; i < TOP_ORDERS; i++) {
        if (strcmp(text, top_order_names[i]) == 0) {
            *ret_order = (TopOrder)i;
            return true;
        }
    }
    return false;
}

static bool parse_option(const char *word, Options *options)
{
    const char *value;
    u64 number;

    if ((value = option_value(word, "--sort=")))
        return parse_order(value, &options->order);
    if ((value = option_value(word, "--interval=")))
        return parse_interval(value, &options->interval_s);
    if ((value = option_value(word, "--count=")))
        return parse_whole(value, UINT32_MAX, &options->count);
    if ((value = option_value(word, "--rows="))) {
        bool is_number = parse_whole(value, UINT32_MAX, &number);
        options->rows = is_number ? (u32)number : 0;
        return is_number;
    }
    if (strcmp(word, "--once") == 0)
        return options->once = true;
    if (strcmp(word, "--batch") == 0)
        return options->batch = true;
    if (strcmp(word, "--json") == 0)
        return options->json = true;
    return false;
}

// Returns -1 to go on, else the status to exit with.
static int parse_words(int argc, char **argv, Options *options)
{
    u64 pid;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        bool is_pid = argv[i][0] != '-' && parse_whole(argv[i], INT_MAX, &pid);
        if (is_pid) {
            options->pid = (i32)pid;
        } else if (!parse_option(argv[i], options)) {
            fprintf(stderr, "muninn top: %s is not an option of it, or not in its range\n%s",
                    argv[i], usage);
            return EXIT_REFUSED;
        }
    }
    if (options->pid)
        return -1;
    fputs(usage, stderr);
    return EXIT_REFUSED;
}

// ----------------------------------------------------------------------- samples

typedef struct Looks {
    const Options *options;
    TopSample samples[2]; // the last and the one before
    u32 now;              // which is the last
    u64 taken;
} Looks;

static SampleState look(Looks *looks, View *view)
{
    TopSample *before = &looks->samples[looks->now], sample;
    char *error = NULL;
    SampleState state = sample_take(looks->options->pid, view->order, looks->taken ? before : NULL,
                                    &sample, &error);

    if (state == SAMPLE_REFUSED)
        fprintf(stderr, "muninn top: process %d does not run under massif, or too old a one: %s\n",
                looks->options->pid, error);
    if (state == SAMPLE_BROKEN)
        fprintf(stderr, "muninn top: the answer of process %d cannot be read\n",
                looks->options->pid);
    free(error);
    if (state != SAMPLE_TAKEN)
        return state;
    looks->now ^= 1;
    sample_free(&looks->samples[looks->now]);
    looks->samples[looks->now] = sample;
    looks->taken++;
    sample_sort(&looks->samples[looks->now], view->order);
    view_take(view, &looks->samples[looks->now]);
    return state;
}

static void read_command(View *view)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/cmdline", view->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, view->command, sizeof(view->command) - 1) : 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i + 1 < n; i++) {
        if (view->command[i] == '\0')
            view->command[i] = ' ';
    }
}

static void sleep_interval(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

// --------------------------------------------------------------------- for scripts

static void print_look(const Options *options, View *view)
{
    if (options->json) {
        view_print_json(view, options->rows, stdout);
    } else {
        view->height = min_u64(options->rows, UINT32_MAX - 16) + 5;
        view_print(view, stdout);
        if (!options->once)
            putchar('\n');
    }
    fflush(stdout);
}

static int run_batch(const Options *options, Looks *looks, View *view)
{
    u64 printed = 0;

    while (options->count == 0 || printed < options->count) {
        sleep_interval(options->interval_s);
        SampleState state = look(looks, view);
        if (state == SAMPLE_SILENCE && printed > 0)
            return 0; // it has ended
        if (state == SAMPLE_SILENCE)
            fprintf(stderr, "muninn top: process %d has ended\n", options->pid);
        if (state != SAMPLE_TAKEN)
            return EXIT_REFUSED;
        print_look(options, view);
        printed++;
        if (ferror(stdout)) {
            fprintf(stderr, "muninn top: cannot write: %s\n", strerror(errno));
            return EXIT_REFUSED;
        }
    }
    return 0;
}

// --------------------------------------------------------------------- on a terminal

static void draw(View *view)
{
    char *frame = NULL;
    size_t size;
    FILE *out = open_memstream(&frame, &size);

    if (!out)
        return;
    terminal_size(&view->width, &view->height);
    view_move(view, 0);
    view_print(view, out);
    fclose(out);
    terminal_show(frame, size >= 2 ? size - 2 : size); // a line end in the last line scrolls
    free(frame);
}

static void sort_by(View *view, Looks *looks, TopOrder order)
{
    view->order = order;
    view->selected = view->offset = 0;
    sample_sort(&looks->samples[looks->now], order);
}

static void press_letter(int letter, View *view, Looks *looks)
{
    switch (letter) {
    case 'b': sort_by(view, looks, TOP_BYTES); break;
    case 'g': sort_by(view, looks, TOP_GROWTH); break;
    case 't': sort_by(view, looks, TOP_TEMPORARY); break;
    case 'a': sort_by(view, looks, TOP_ALLOCATIONS); break;
    case 'p': view->is_paused = !view->is_paused; break;
    case 'h':
    case '?': view->shows_help = !view->shows_help; break;
    case '+': view->interval_s = view->interval_s > 0.1 ? view->interval_s / 2 : 0.05; break;
    case '-': view->interval_s = view->interval_s < 43200 ? view->interval_s * 2 : 86400; break;
    default: break;
    }
}

// False: it is time to end.
static bool press(int key, View *view, Looks *looks)
{
    i64 page = (i64)view_rows(view);

    switch (key) {
    case KEY_QUIT:      return false;
    case KEY_UP:        view_move(view, -1); break;
    case KEY_DOWN:      view_move(view, 1); break;
    case KEY_PAGE_UP:   view_move(view, -page); break;
    case KEY_PAGE_DOWN: view_move(view, page); break;
    case KEY_HOME:      view_move(view, INT32_MIN); break;
    case KEY_END:       view_move(view, INT32_MAX); break;
    case KEY_ENTER:     view->shows_stack = !view->shows_stack; break;
    default:
        if (key >= KEY_OTHER)
            press_letter(key - KEY_OTHER, view, looks);
    }
    return true;
}

static u64 clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

static int run_terminal(Looks *looks, View *view)
{
    u64 last_ms = clock_ms();

    view->is_terminal = true;
    for (;;) {
        draw(view);
        u64 wait_ms = (u64)(view->interval_s * 1000), since_ms = clock_ms() - last_ms;
        bool is_still = view->is_paused || view->has_ended;
        int key = terminal_key(is_still ? UINT32_MAX : wait_ms > since_ms ? wait_ms - since_ms : 0);
        if (!press(key, view, looks))
            return terminal_signal() ? 128 + terminal_signal() : 0;
        if (is_still || clock_ms() - last_ms < (u64)(view->interval_s * 1000))
            continue;
        last_ms = clock_ms();
        view->has_ended = look(looks, view) != SAMPLE_TAKEN;
    }
}

int top_main(int argc, char **argv)
{
    static View view;
    static Looks looks;
    Options options = {.interval_s = 1, .rows = ROWS_DEFAULT};

    int status = parse_words(argc, argv, &options);
    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_DFL);
    setlocale(LC_CTYPE, "");
    view.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    view.pid = options.pid;
    view.order = options.order;
    view.interval_s = options.interval_s;
    looks.options = &options;
    options.count = options.once ? 1 : options.count;

    SampleState state = look(&looks, &view);
    if (state == SAMPLE_SILENCE)
        ctl_explain_silence("top", options.pid);
    if (state != SAMPLE_TAKEN)
        return EXIT_REFUSED;
    read_command(&view);
    if (options.once || options.batch || options.json)
        return run_batch(&options, &looks, &view);
    if (!terminal_open()) {
        fputs("muninn top: this is no terminal; --once and --batch need none\n", stderr);
        return EXIT_REFUSED;
    }
    status = run_terminal(&looks, &view);
    terminal_close();
    return status;
}
