// SPDX-License-Identifier: MIT
//
// What takes long is done by a copy of this process: it has the model as it was at the
// moment of fork(), and all the time to look up names and write a file, while this one
// goes on reading the rings and the program goes on running.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/heap/model.h"

enum { READ_BYTES = 64 * 1024 };

static _Noreturn void be_the_copy(HeapModel *model, const CopyTask *task, int fd)
{
    FILE *out = fdopen(fd, "w");

    signal(SIGCHLD, SIG_DFL);
    symbols_after_fork(model->config.symbols);
    for (size_t i = 0; i < model->codes.count; i++) {
        const Code *code = vec_at(&model->codes, i);
        if (code->symbols && code->symbols != model->config.symbols)
            symbols_after_fork(code->symbols); // a twin's, of its parent
    }
    model->writer = NULL; // the recording is the parent's
    if (out) {
        task->work(model, task->arg, out);
        fclose(out);
    }
    _exit(0);
}

bool copy_start(HeapModel *model, const CopyTask *task)
{
    int ends[2];
    CopyTask *place = NULL;

    for (u32 i = 0; i < COPIES_MAX; i++) {
        if (!model->copies[i].work)
            place = &model->copies[i];
    }
    if (!place || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        be_the_copy(model, task, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *place = *task;
    place->fd = ends[0];
    return true;
}

// False: there is nothing to read now.
static bool take_some(CopyTask *task, bool *ret_ended)
{
    if (task->capacity - task->size < READ_BYTES) {
        u8 *larger = realloc(task->answer, task->capacity * 2 + READ_BYTES);
        if (!larger)
            return false;
        task->answer = larger;
        task->capacity = task->capacity * 2 + READ_BYTES;
    }
    ssize_t n = read(task->fd, task->answer + task->size, READ_BYTES);
    if (n < 0 && errno == EINTR)
        return true;
    if (n > 0)
        task->size += (size_t)n;
    *ret_ended = n == 0 || (n < 0 && errno != EAGAIN);
    return n > 0;
}

void copy_turn(HeapModel *model)
{
    for (u32 i = 0; i < COPIES_MAX; i++) {
        CopyTask *task = &model->copies[i];
        bool ended = false;

        while (task->work && take_some(task, &ended))
            ;
        if (!ended)
            continue;
        CopyTask done = *task;
        close(done.fd);
        *task = (CopyTask){0};
        done.end(model, done.arg, done.answer, done.size);
        free(done.answer);
    }
}

bool copy_is_at_work(const HeapModel *model)
{
    for (u32 i = 0; i < COPIES_MAX; i++) {
        if (model->copies[i].work)
            return true;
    }
    return false;
}

// The copies go on; nobody hears of them.
void copy_forget_all(HeapModel *model, bool close_them)
{
    for (u32 i = 0; i < COPIES_MAX; i++) {
        CopyTask *task = &model->copies[i];
        if (task->work && close_them)
            close(task->fd);
        free(task->answer);
        *task = (CopyTask){0};
    }
}
