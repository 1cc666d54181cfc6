// SPDX-License-Identifier: MIT
//
// Every command about leaks and memory, right and wrong, given by request. The other thread waits, so that
// its stack and its thread-local variables are searched as they are.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

struct node { struct node *left, *right; };
struct node *tree;
char *inside;
uint64_t *length64;
static __thread void *thread_local;
static void *on_stack, *in_tls;
static uintptr_t hidden; // where lose() had its tree, turned around

static struct node *grow(int depth)
{
    struct node *node = malloc(sizeof(*node));
    node->left = depth ? grow(depth - 1) : NULL;
    node->right = depth ? grow(depth - 1) : NULL;
    return node;
}

__attribute__((noinline)) static void lose(void)
{
    hidden = ~(uintptr_t)grow(2);
}

__attribute__((noinline)) static void clear_stack(void)
{
    volatile char used[8192];
    memset((char *)used, 0, sizeof(used));
}

static void *work(void *barrier)
{
    void *volatile mine = malloc(222);
    thread_local = malloc(333);
    on_stack = (void *)~(uintptr_t)mine;
    in_tls = (void *)~(uintptr_t)thread_local;
    pthread_barrier_wait(barrier);
    for (;;)
        pause();
    return mine;
}

// The place is given turned around, lest it be found where it is only named.
static void ask(const char *command, uintptr_t turned, const char *rest)
{
    char text[128];
    snprintf(text, sizeof(text), "%s 0x%lx %s", command, (unsigned long)~turned, rest);
    (void)VALGRIND_MONITOR_COMMAND(text);
    memset(text, 0, sizeof(text));
}

#define SAY(command) (void)VALGRIND_MONITOR_COMMAND(command)

static void ask_about_leaks(void)
{
    SAY("leak_check full any");
    SAY("block_list 1..99");
    SAY("leak_check full reachable any");
    SAY("l s");
    SAY("leak_check full kinds indirect,possible any");
    SAY("leak_check full heuristics all reachable any");
    SAY("block_list 1..99 heuristics length64");
    SAY("block_list 1..99 heuristics stdstring,newarray");
    ask("who_points_at", ~(uintptr_t)tree, "");
    ask("who_points_at", ~(uintptr_t)(inside - 10), "100");
    ask("who_points_at", ~(uintptr_t)(length64 - 1), "64");
    ask("who_points_at", (uintptr_t)on_stack, "");
    ask("who_points_at", (uintptr_t)in_tls, "");
    ask("who_points_at", hidden, "16");
}

static void ask_about_memory(void)
{
    char *text = malloc(10);
    uintptr_t turned = ~(uintptr_t)text;
    for (int i = 1; i < 10; i += 2)
        text[i] = (char)('a' + i);
    ask("get_vbits", turned, "12");
    ask("xb", turned, "12");
    ask("get_vbits", turned, "");
    ask("check_memory defined", turned, "1");
    ask("check_memory addressable", turned, "12");
    ask("check_memory defined", ~(uintptr_t)tree, "");
    ask("make_memory defined", turned, "10");
    ask("get_vbits", turned, "10");
    ask("make_memory noaccess", turned, "2");
    ask("make_memory undefined", turned + 0, "1");
    ask("make_memory Definedifaddressable", turned, "2");
    ask("xb", turned, "4");
    SAY("get_vbits 0x10 4");
    SAY("xb 0x10 4");
}

int main(void)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    lose();
    tree = grow(1);
    inside = (char *)malloc(100) + 10;
    length64 = malloc(64);
    *length64++ = 56;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, work, &barrier);
    pthread_barrier_wait(&barrier);
    clear_stack();
    ask_about_leaks();
    ask_about_memory();
    SAY("who_points_at");
    SAY("who_points_at 0");
    SAY("get_vbits");
    SAY("block_list");
    SAY("block_list 0");
    SAY("block_list 999");
    SAY("block_list 5..2");
    SAY("block_list x");
    SAY("block_list 3 foo");
    SAY("block_list 2 limited");
    fflush(NULL);
    _exit(0);
}
