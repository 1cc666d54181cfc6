// SPDX-License-Identifier: MIT
//
// What `muninn ctl` and the program itself ask of the model while the program runs. It is
// answered from what is here: no thread of the program is asked.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/heap/model.h"

void asker_say(const Asker *asker, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size >= 0 && asker->arg)
        asker->say(asker->arg, text);
    free(text);
}

// ------------------------------------------------------------------- snapshots

typedef struct SnapshotTask {
    Asker asker;
    MassifWhich which;
    char path[];
} SnapshotTask;

// The status, then the text of the answer.
static void write_file(HeapModel *model, void *arg, FILE *out)
{
    SnapshotTask *task = arg;
    int error = files_write_massif(model, task->path, task->which, false);

    if (error)
        fprintf(out, "1%s: %s\n", task->path, strerror(-error));
    else
        fprintf(out, "0written to %s\n", task->path);
}

static void file_is_written(HeapModel *model, void *arg, const u8 *answer, size_t size)
{
    SnapshotTask *task = arg;
    (void)model;
    if (task->asker.arg) {
        if (size == 0)
            asker_say(&task->asker, "%s: the copy of the monitor has died\n", task->path);
        else
            asker_say(&task->asker, "%.*s", (int)size - 1, answer + 1);
        task->asker.done(task->asker.arg, size == 0 || answer[0] != '0');
    }
    free(task);
}

static int write_now(HeapModel *model, SnapshotTask *task)
{
    char *answer = NULL;
    size_t size;
    FILE *out = open_memstream(&answer, &size);
    int status = 1;

    if (out) {
        write_file(model, task, out);
        fclose(out);
        asker_say(&task->asker, "%s", answer + 1);
        status = answer[0] != '0';
    }
    free(answer);
    free(task);
    return status;
}

static int write_snapshot(HeapModel *model, HeapCommand command, const char *path,
                          const Asker *asker, bool wait)
{
    static const MassifWhich which[] = {
        [HEAP_SNAPSHOT] = MASSIF_NOW,
        [HEAP_DETAILED_SNAPSHOT] = MASSIF_NOW_DETAILED,
        [HEAP_ALL_SNAPSHOTS] = MASSIF_ALL,
    };
    const char *label = *path ? path : NULL;
    if (!label)
        path = "massif.vgdb.out"; // the incumbent's name for it
    SnapshotTask *task = malloc(sizeof(*task) + strlen(path) + 1);
    if (!task)
        return 1;
    *task = (SnapshotTask){.asker = *asker, .which = which[command]};
    strcpy(task->path, path);
    Moment moment = model_moment(model);
    files_keep_state(model, STATE_ASKED, label, &moment);
    if (model->writer)
        recording_flush(model->writer);
    CopyTask copy = {.work = write_file, .end = file_is_written, .arg = task};
    if (!wait && copy_start(model, &copy))
        return HEAP_LATER;
    return write_now(model, task);
}

int heap_command(HeapModel *model, HeapCommand command, const char *arguments, HeapSayFn *say,
                 HeapDoneFn *done, void *arg, bool wait)
{
    Asker asker = {say, done, arg};

    if (command == HEAP_TOP)
        return top_answer(model, arguments, &asker, wait);
    if (command == HEAP_NAMES)
        return names_answer(model, &asker, wait);
    return write_snapshot(model, command, arguments, &asker, wait);
}

// The argument of every task begins with who asked.
void heap_forget(HeapModel *model, void *arg)
{
    for (u32 i = 0; i < COPIES_MAX; i++) {
        Asker *asker = model->copies[i].work ? model->copies[i].arg : NULL;
        if (asker && asker->arg == arg)
            asker->arg = NULL;
    }
}
