// SPDX-License-Identifier: MIT
//
// Names for whoever looks at the recording of a program that runs: a copy of the monitor looks
// them up, the monitor writes them down. Each pc is looked up once in the whole run.
#include <stdlib.h>

#include "monitor/heap/model.h"

typedef struct NameTask {
    Asker asker; // first, as in every task
} NameTask;

static void look_up_all(HeapModel *model, void *arg, FILE *out)
{
    (void)arg;
    for (u32 i = 1; i < model->places.count; i++)
        names_send(model, i, out);
}

static void all_are_here(HeapModel *model, void *arg, const u8 *answer, size_t size)
{
    NameTask *task = arg;

    names_receive(model, answer, size);
    names_record_known(model);
    if (task->asker.arg)
        task->asker.done(task->asker.arg, 0);
    free(task);
}

static bool all_are_known(const HeapModel *model)
{
    for (u32 i = 1; i < model->codes.count; i++) {
        const Code *code = vec_at(&model->codes, i);
        if (!code->is_named && code->pc != 0)
            return false;
    }
    return true;
}

int names_answer(HeapModel *model, const Asker *asker, bool wait)
{
    NameTask *task = all_are_known(model) || wait ? NULL : malloc(sizeof(*task));

    if (task) {
        *task = (NameTask){*asker};
        CopyTask copy = {.work = look_up_all, .end = all_are_here, .arg = task};
        if (copy_start(model, &copy))
            return HEAP_LATER;
        free(task);
    }
    names_record_known(model);
    return 0;
}
