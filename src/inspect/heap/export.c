// SPDX-License-Identifier: MIT
//
// `muninn heap export`: opens the output, and inspect/export/ writes it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/same_file.h"
#include "inspect/export/export.h"
#include "inspect/heap/command.h"

// A flame graph has no lines, and every frame, unless the user wants it otherwise.
static TreeOptions tree_options(const Arguments *arguments)
{
    bool is_flame = arguments->command->sets & FOR_TREE;

    return (TreeOptions){
        .bottom_up = arguments->bottom_up,
        .collapse_recursion = is_flame && !arguments->keep_recursion,
        .by_function = true,
        .fold_libraries = arguments->fold_libraries,
        .only_code = arguments->only_code,
        .hide_allocators = is_flame && !arguments->show_allocators,
    };
}

static bool write_to(Question *question, const ExportFormat *format, FILE *out)
{
    char *error = NULL;
    ExportJob job = {
        .recording = question->recording,
        .out = out,
        .progress = progress_set,
        .metric = question_metric(question),
        .tree = tree_options(question->arguments),
    };

    if (format->is_whole_run && !question->has_time)
        question->selection.at_peak = false; // the default of a moment
    job.selection = question->selection;
    progress_begin("exporting");
    bool ok = format->write(&job, &error);
    progress_end();
    if (!ok)
        heap_error_line(error);
    return ok;
}

int heap_export_as(Question *question, const char *name)
{
    const char *path = question->arguments->output;
    const ExportFormat *format = export_find(name);
    bool to_stdout = !path || strcmp(path, "-") == 0;

    if (!format)
        return heap_error("%s is no format to export to; there are %s", name, export_names());
    if (to_stdout && format->is_binary && isatty(STDOUT_FILENO))
        return heap_error("%s is not text: name a file with -o", name);
    for (u32 i = 0; i < question->arguments->word_count && !to_stdout; i++) {
        if (is_same_file(path, question->arguments->words[i]))
            return heap_error("%s is what is read: it would be lost", path);
    }
    int error = 0;
    FILE *out = to_stdout ? stdout : output_stream(path, &error);
    if (!out)
        return heap_error("cannot write %s: %s", path, output_error(error));
    bool ok = write_to(question, format, out);
    bool flushed = fflush(out) == 0 && !ferror(out);
    flushed &= to_stdout || fclose(out) == 0;
    if (ok && !flushed && !(to_stdout && errno == EPIPE))
        ok = heap_error("cannot write %s: %s", to_stdout ? "the answer" : path,
                        strerror(errno)) == 0;
    return ok ? 0 : 1;
}

int heap_export(Question *question)
{
    if (!question->arguments->format)
        return heap_error("export needs --format=: %s", export_names());
    return heap_export_as(question, question->arguments->format);
}
