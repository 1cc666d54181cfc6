// SPDX-License-Identifier: MIT
//
// Damaged answers through top's reader and view, built with sanitizers: fuzz FILE COUNT.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/top/view.h"
#include "monitor/control/control.h"

static unsigned long long state = 1;

static unsigned next_random(unsigned below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % below;
}

// Nobody is asked here.
int ctl_ask(i32 pid, const char *command, int timeout_ms, AnswerFn *fn, void *arg)
{
    (void)pid, (void)command, (void)timeout_ms, (void)fn, (void)arg;
    return -1;
}

static void damage(char *text, size_t size)
{
    static const char bytes[] = "{}[]\",:\\u0-9.eE\x01\xff\xc3\xf0tnf";

    for (unsigned hits = next_random(6); hits > 0; hits--) {
        size_t at = next_random((unsigned)size), from = next_random((unsigned)size);
        size_t span = 1 + next_random(40);
        span = span < size - at ? span : size - at;
        span = span < size - from ? span : size - from;
        switch (next_random(3)) {
        case 0:  text[at] = bytes[next_random(sizeof(bytes) - 1)]; break;
        case 1:  memmove(text + at, text + from, span); break;
        default: text[next_random(4) ? at : size - 1] = (char)next_random(256);
        }
    }
}

int main(int argc, char **argv)
{
    static char seed[1 << 20];
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    size_t size = file ? fread(seed, 1, sizeof(seed) - 1, file) : 0;
    TopSample samples[2] = {{0}};
    unsigned read = 0;

    if (size == 0)
        return 2;
    fclose(file);
    for (int i = 0; i < atoi(argv[2]); i++) {
        static View view;
        char *text = malloc(size + 1);
        memcpy(text, seed, size + 1);
        damage(text, size);
        TopSample sample;
        if (sample_parse(text, read ? &samples[read & 1] : NULL, &sample) != SAMPLE_TAKEN)
            continue;
        read++;
        sample_free(&samples[read & 1]);
        samples[read & 1] = sample;
        sample_sort(&samples[read & 1], (TopOrder)next_random(TOP_ORDERS));
        view.width = next_random(120);
        view.height = 1 + next_random(40);
        view.is_terminal = next_random(2);
        view.is_utf8 = next_random(2);
        view.shows_stack = next_random(2);
        view_take(&view, &samples[read & 1]);
        view_move(&view, (i64)next_random(40) - 20);
        view_print(&view, stdout);
        view_print_json(&view, next_random(30), stdout);
    }
    sample_free(&samples[0]);
    sample_free(&samples[1]);
    return read > 10 ? 0 : 3;
}
