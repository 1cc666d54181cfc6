// SPDX-License-Identifier: MIT
//
// Calls functions that a tool wraps and replaces, and leaves them in all ways.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>

static jmp_buf back;

extern "C" {
__attribute__((noipa)) long plain(long n)
{
    return n + 1;
}

__attribute__((noipa)) long jumps(long n)
{
    if (n)
        longjmp(back, 1);
    return n;
}

__attribute__((noipa)) long throws(long n)
{
    if (n)
        throw std::runtime_error("thrown");
    return n;
}

__attribute__((noipa)) long ends(long n)
{
    if (n)
        pthread_exit(nullptr);
    return n;
}

__attribute__((noipa)) long outer(long n)
{
    if (setjmp(back) == 0)
        jumps(n);
    return n + 100;
}

__attribute__((noipa)) long replaced(long n)
{
    return n + 1000;
}

__attribute__((noipa)) long declined(long n)
{
    return n + 1000;
}

__attribute__((noipa)) long called(long n)
{
    return n * 3;
}
}

static void *run_ends(void *)
{
    ends(1);
    return nullptr;
}

int main()
{
    pthread_t thread;
    printf("plain %ld\n", plain(1));
    printf("outer %ld\n", outer(2));
    try {
        throws(3);
    } catch (const std::exception &e) {
        printf("%s\n", e.what());
    }
    pthread_create(&thread, nullptr, run_ends, nullptr);
    pthread_join(thread, nullptr);
    printf("replaced %ld\n", replaced(4));
    printf("declined %ld\n", declined(5));
    void *volatile block = malloc(77);
    free(block);
    return 0;
}
