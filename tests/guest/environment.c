// SPDX-License-Identifier: MIT
// BUILD: -O2
// LIB: preload
// LIB: found_by_path
// ENV: LD_PRELOAD=$GUEST_DIR/preload.so
// ENV: LD_LIBRARY_PATH=$GUEST_DIR
// ENV: GLIBC_TUNABLES=glibc.malloc.tcache_count=0
// ENV: MALLOC_ARENA_MAX=1
// ENV: MALLOC_PERTURB_=85
// ENV: LD_BIND_NOW=1
// ENV: EMPTY=
//
// The variables that steer a dynamic linker and a malloc reach the client, act there, and are seen
// in its environment in their place.
#include "guest.h"
#include <dlfcn.h>

int main(void)
{
    static const char *const names[] = {"LD_PRELOAD",       "LD_LIBRARY_PATH", "GLIBC_TUNABLES",
                                        "MALLOC_ARENA_MAX", "MALLOC_PERTURB_", "LD_BIND_NOW",
                                        "EMPTY",            "ABSENT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        say("%s=%s\n", names[i], value ? value : "(unset)");
    }
    int count = 0;
    for (char **e = environ; *e; e++, count++)
        say("environ[%d] %.*s\n", count, (int)strcspn(*e, "="), *e);
    say("rand() = %d\n", rand());

    void *library = dlopen("found_by_path.so", RTLD_NOW);
    int (*function)(void) = library ? (int (*)(void))dlsym(library, "found_by_path") : NULL;
    say("found by path: %d\n", function ? function() : -1);
    volatile unsigned char *volatile fresh = malloc(100);
    say("malloc perturbed: %02x\n", fresh[50]);
    return 0;
}
