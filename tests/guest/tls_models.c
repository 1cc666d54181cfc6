// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread -fPIC
// LIB: tls_module
//
// All four TLS models in one program, and a dlopen'd module's TLS, in main and in other threads.
#include "guest.h"
#include <dlfcn.h>
#include <pthread.h>

__thread int exec_local __attribute__((tls_model("local-exec"))) = 1;
__thread int init_exec __attribute__((tls_model("initial-exec"))) = 2;
static __thread int local_dynamic __attribute__((tls_model("local-dynamic"))) = 3;
__thread int global_dynamic __attribute__((tls_model("global-dynamic"))) = 4;
static __thread long zeroed[100];

static int (*module_bump)(int);
static int (*module_buffer_end)(void);

static void *use(void *name)
{
    for (int i = 0; i < 1000; i++) {
        exec_local += 1;
        init_exec += 2;
        local_dynamic += 3;
        global_dynamic += 4;
        zeroed[i % 100] += i;
    }
    say("%s: %d %d %d %d %ld\n", (char *)name, exec_local, init_exec, local_dynamic,
        global_dynamic, zeroed[99]);
    say("%s: module %d %d %d\n", (char *)name, module_bump(1), module_bump(10),
        module_buffer_end());
    return &exec_local;
}

int main(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tls_module.so", getenv("GUEST_DIR"));
    void *module = dlopen(path, RTLD_NOW);
    if (!module) {
        say("FAIL %s\n", dlerror());
        return 1;
    }
    module_bump = (int (*)(int))dlsym(module, "module_bump");
    module_buffer_end = (int (*)(void))dlsym(module, "module_buffer_end");

    void *mine = use("main");
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *theirs;
        pthread_create(&thread, NULL, use, "thread");
        pthread_join(thread, &theirs);
        say("own copy: %d\n", theirs != mine);
    }
    say("main keeps: %d %d\n", exec_local, module_bump(0));
    int *by_name = dlsym(module, "module_tls");
    say("dlsym of a TLS symbol: %d\n", *by_name);
    return 0;
}
