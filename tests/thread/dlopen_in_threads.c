// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// LIB: plugin
// STRESS: tiny-blocks
//
// Several threads load, call and unload a library again and again: its code comes and goes at the
// same addresses while others run in it.
#include "guest.h"
#include <dlfcn.h>
#include <pthread.h>

static char path[4096];
static int wrong;

static void *body(void *arg)
{
    for (int i = 0; i < 150; i++) {
        void *library = dlopen(path, i & 1 ? RTLD_NOW : RTLD_LAZY);
        int (*call)(int) = library ? (int (*)(int))dlsym(library, "plugin_call") : NULL;
        if (!call || call(i) != i * 3 + 1)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        if (library)
            dlclose(library);
    }
    return arg;
}

int main(void)
{
    snprintf(path, sizeof path, "%s/plugin.so", getenv("GUEST_DIR"));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, body, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    say("wrong %d\n", wrong);
    return 0;
}
