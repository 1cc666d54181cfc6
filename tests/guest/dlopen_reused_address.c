// SPDX-License-Identifier: MIT
// BUILD: -O2
// LIB: answer_one
// LIB: answer_two
// STRESS: tiny-blocks
//
// Two libraries of one layout are loaded and unloaded in turn, so that they land on the same
// addresses: a call after dlopen must run the new bytes, not a translation of the old ones.
#include "guest.h"
#include <dlfcn.h>

static int call_library(const char *name, int x)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("GUEST_DIR"), name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        say("FAIL %s\n", dlerror());
        exit(1);
    }
    int (*answer)(int) = (int (*)(int))dlsym(library, "answer");
    int result = 0;
    for (int i = 0; i < 50; i++)
        result = answer(x);
    dlclose(library);
    return result;
}

int main(void)
{
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        wrong += call_library("answer_one", i) != i * 5 + 1;
        wrong += call_library("answer_two", i) != i * 7 + 2;
    }
    say("wrong answers: %d\n", wrong);
    return 0;
}
