// SPDX-License-Identifier: MIT
//
// The options of `muninn ms_print`, and which kind of file it was given.
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/ms_print/page.h"
#include "inspect/ms_print/ms_print.h"
#include "recording/recording.h"

enum { EXIT_REFUSED = 1 };

static const char usage[] =
    "usage: muninn ms_print [options] FILE\n"
    "\n"
    "Prints massif.out (plain, .gz or .zst) or a recording, muninn.heap.PID, as text.\n"
    "\n"
    "    -h --help             show this message\n"
    "    --version             show the version\n"
    "    --threshold=<m.n>     leave out what is below this percentage of the total [1]\n"
    "    --x=<4..1000>         width of the graph, in columns [72]\n"
    "    --y=<4..1000>         height of the graph, in rows [20]\n"
    "  of a recording:\n"
    "    --peak                the tree of the peak alone\n"
    "    --at=<time>           the tree of one moment: 1.5s, 200ms, 50%, start, peak, end, or a\n"
    "                          number in the unit of the time column\n"
    "    --diff=<time>,<time>  what was allocated and freed between two moments\n";

static const char *option_value(const char *word, const char *name)
{
    size_t length = strlen(name);

    return strncmp(word, name, length) == 0 ? word + length : NULL;
}

// Digits, with a point among them at most.
static bool parse_percent(const char *text, double *ret_percent)
{
    size_t digits = strspn(text, "0123456789");
    size_t point = text[digits] == '.';
    size_t decimals = point ? strspn(text + digits + 1, "0123456789") : 0;

    if (text[digits + point + decimals] || digits + decimals == 0)
        return false;
    double percent = strtod(text, NULL);
    if (percent > 100)
        return false;
    *ret_percent = percent;
    return true;
}

static bool parse_cells(const char *text, u32 *ret_cells)
{
    char *end;

    if (!isdigit((u8)*text))
        return false;
    unsigned long cells = strtoul(text, &end, 10);
    if (*end || cells < GRAPH_CELLS_MIN || cells > GRAPH_CELLS_MAX)
        return false;
    *ret_cells = (u32)cells;
    return true;
}

typedef struct Request {
    PageOptions page;
    const char *path;
    const char *at;   // NULL: the whole
    const char *diff; // NULL: none
} Request;

// False: it is no option of ours, or its value is none.
static bool parse_option(const char *word, Request *request)
{
    const char *value;

    if ((value = option_value(word, "--threshold=")))
        return parse_percent(value, &request->page.threshold_percent);
    if ((value = option_value(word, "--x=")))
        return parse_cells(value, &request->page.width);
    if ((value = option_value(word, "--y=")))
        return parse_cells(value, &request->page.height);
    if ((value = option_value(word, "--at=")) || (value = option_value(word, "--diff=")))
        return *(*(word[2] == 'a' ? &request->at : &request->diff) = value) != '\0';
    if (strcmp(word, "--peak") == 0)
        return (request->at = "peak") != NULL;
    return false;
}

// Returns -1 to go on, else the status to exit with.
static int parse_words(int argc, char **argv, Request *request)
{
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(word, "--version") == 0) {
            puts("ms_print of muninn " MUNINN_VERSION);
            return 0;
        }
        if (word[0] != '-' || strcmp(word, "-") == 0) {
            if (request->path) {
                fprintf(stderr, "muninn ms_print: one file at a time: what is %s?\n", word);
                return EXIT_REFUSED;
            }
            request->path = word;
        } else if (!parse_option(word, request)) {
            fprintf(stderr, "muninn ms_print: %s is not an option of it, or not in its range\n%s",
                    word, usage);
            return EXIT_REFUSED;
        }
    }
    if (!request->path) {
        fputs(usage, stderr);
        return EXIT_REFUSED;
    }
    return -1;
}

static int fail(const Request *request, char *error)
{
    fprintf(stderr, "muninn ms_print: %s: %s\n", request->path,
            error ? error : "there is not enough memory");
    free(error);
    return EXIT_REFUSED;
}

// Frees the file; NULL is the failure `error`.
static int print_file(const Request *request, MassifFile *file, char *error)
{
    if (!file)
        return fail(request, error);
    if (file->problem)
        fprintf(stderr, "muninn ms_print: %s: %s; what is before it follows\n", request->path,
                file->problem);
    page_print_preamble(&request->page, file->command, file->arguments);
    if (request->at)
        puts("\n"); // one moment is no graph
    else
        page_print_graph(&request->page, file);
    page_print_snapshots(&request->page, file);
    int status = file->problem ? EXIT_REFUSED : 0;
    massif_file_free(file);
    return status;
}

static int print_recording(const Request *request)
{
    char *error = NULL;
    Recording *recording = recorded_open(request->path, &error);
    int status;

    if (!recording) { // the line names the file
        fprintf(stderr, "muninn ms_print: %s\n", error ? error : "there is not enough memory");
        free(error);
        return EXIT_REFUSED;
    }
    if (request->diff) {
        status = recorded_print_change(&request->page, recording, request->diff, &error);
        status = status ? fail(request, error) : 0;
    } else {
        MassifFile *file = request->at ? recorded_at(recording, request->at, &error)
                                       : recorded_whole(recording, &error);
        status = print_file(request, file, error);
    }
    recording_free(recording);
    return status;
}

// massif.out as it is; what is something else, or is to be shown otherwise, by way of a recording.
static int print_any(const Request *request)
{
    ForeignText text;
    char *error = NULL;

    if (request->at || request->diff)
        return print_recording(request);
    if (!foreign_read(request->path, &text, &error)) {
        fprintf(stderr, "muninn ms_print: %s\n", error ? error : "there is not enough memory");
        free(error);
        return EXIT_REFUSED;
    }
    if (foreign_is_recordable(&text)) {
        foreign_free(&text);
        return print_recording(request);
    }
    MassifFile *file = massif_file_parse(&text, &error);
    return print_file(request, file, error);
}

int ms_print_main(int argc, char **argv)
{
    Request request = {.page = {.threshold_percent = 1, .width = 72, .height = 20,
                                .argc = argc, .argv = argv}};

    signal(SIGPIPE, SIG_DFL);
    int status = parse_words(argc, argv, &request);
    if (status >= 0)
        return status;
    status = print_any(&request);
    if (recorded_is_damaged() && status == 0)
        status = EXIT_REFUSED;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "muninn ms_print: cannot write the answer: %s\n", strerror(errno));
    return EXIT_REFUSED;
}
