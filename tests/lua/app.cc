// SPDX-License-Identifier: MIT
//
// The program of docs/user/recipes.md: it does a known number of everything that they show.
#include <fcntl.h>
#include <pthread.h>
#include <stdexcept>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#define EXPORTED extern "C" __attribute__((noinline))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORTED void *grab(size_t size)
{
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

EXPORTED int parse(const char *text)
{
    volatile int sum = 0;
    for (int i = 0; text[i]; i++)
        sum = sum + text[i];
    return sum;
}

EXPORTED int render(int lines)
{
    volatile int sum = 0;
    for (int i = 0; i < lines * 1000; i++)
        sum = sum + i;
    return sum;
}

EXPORTED void never_called(void)
{
    puts("never");
}

EXPORTED int is_password(const char *word)
{
    int (*volatile compare)(const char *, const char *) = strcmp;
    return compare(word, "sesame") == 0;
}

EXPORTED void read_file(const char *path)
{
    char bytes[16];
    int fd = open(path, O_RDONLY);
    for (int i = 0; fd >= 0 && i < 4; i++)
        if (read(fd, bytes, sizeof(bytes)) < 0)
            perror(path);
    close(fd);
}

EXPORTED void fail(int number)
{
    if (number % 2)
        throw std::runtime_error("odd");
    throw number;
}

EXPORTED void hold(useconds_t time)
{
    pthread_mutex_lock(&lock);
    usleep(time);
    pthread_mutex_unlock(&lock);
}

static void *work(void *)
{
    for (int i = 0; i < 8; i++)
        free(grab(1000));
    hold(100);
    return nullptr;
}

int main()
{
    pthread_t thread;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, nullptr);
    for (int i = 0; i < 64; i++)
        free(grab(48));
    for (int i = 0; i < 5; i++)
        parse("a line of text");
    render(40);
    is_password("12345");
    is_password("sesame");
    read_file("/etc/passwd");
    read_file("/nowhere");
    for (int i = 0; i < 5; i++) {
        try {
            fail(i);
        } catch (...) {
        }
    }
    hold(2000);
    return 0;
}
