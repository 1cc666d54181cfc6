// SPDX-License-Identifier: MIT
//
// The wrapped function and its wrapper lie in objects that come and go in every order.
// LIBRARY: target objects_target.c -Wl,-soname,libtarget.so.1
// LIBRARY: wrappers objects_wrappers.c
// STDOUT: target alone: 1
// STDOUT: with wrappers: 101
// STDOUT: wrappers gone: 1
// STDOUT: with wrappers again: 101
// STDOUT: target gone and back: 101
// STDOUT: many times: 200 wrapped
// STDOUT: the C library's: / of one version, wrapped of the other
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int Function(int a);

char *old_realpath(const char *name, char *to);
__asm__(".symver old_realpath,realpath@GLIBC_2.2.5");

static void *open_library(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.so", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    return library;
}

static int call(void *library)
{
    return ((Function *)dlsym(library, "target"))(1);
}

static int come_and_go(const char *folder, void *target)
{
    int wrapped = 0;
    for (int i = 0; i < 100; i++) {
        void *wrappers = open_library(folder, "wrappers");
        wrapped += call(target) == 101;
        dlclose(wrappers);
        wrapped += call(target) == 1;
    }
    return wrapped;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    void *target = open_library(folder, "target");
    printf("target alone: %d\n", call(target));
    void *wrappers = open_library(folder, "wrappers");
    printf("with wrappers: %d\n", call(target));
    dlclose(wrappers);
    printf("wrappers gone: %d\n", call(target));
    wrappers = open_library(folder, "wrappers");
    printf("with wrappers again: %d\n", call(target));
    dlclose(target);
    target = open_library(folder, "target");
    printf("target gone and back: %d\n", call(target));
    dlclose(wrappers);
    printf("many times: %d wrapped\n", come_and_go(folder, target));
    wrappers = open_library(folder, "wrappers");
    char path[4096];
    const char *new_one = realpath("/", path) ? path : "failed";
    const char *old_one = old_realpath("/", path + 100);
    printf("the C library's: %s of one version, %s of the other\n", new_one, old_one);
    dlclose(wrappers);
    dlclose(target);
    return 0;
}
