// SPDX-License-Identifier: MIT
//
// Blocks held by each kind of holder; `// is NAME` names what a line allocates.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct node { struct node *next; void *payload; };
struct node *list;
static void *table[5000];
static void *owners[20];
char *inside;
static __thread void *local_to_thread;

static void *work(void *barrier)
{
    void *volatile local = malloc(111); // is local
    local_to_thread = malloc(222); // is thread-local
    pthread_barrier_wait(barrier);
    pause();
    return local;
}

// Deep, so that nothing of it is left on the stack that main() still uses.
__attribute__((noinline)) static void lose(void)
{
    void ***top = malloc(24); // is top
    for (int i = 0; i < 2; i++) {
        top[i] = malloc(32); // is below
        top[i][1] = malloc(48); // is deeper
    }
}

__attribute__((noinline)) static void build(void)
{
    for (int i = 0; i < 10; i++) {
        struct node *node = malloc(sizeof(*node)); // is node
        node->payload = malloc(100); // is payload
        node->next = list;
        list = node;
    }
    for (int i = 0; i < 5000; i++)
        table[i] = malloc(8); // is entry
    inside = (char *)malloc(64) + 5; // is inside
    local_to_thread = malloc(444); // is main's
    void **mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped[7] = malloc(555); // is mapped
}

// Each depth is a stack of its own.
static void own(int depth, void *block)
{
    if (depth > 0) {
        own(depth - 1, block);
        return;
    }
    void **owner = malloc(8); // is owner
    *owner = block;
    for (int i = 0; i < 20; i++) {
        if (!owners[i]) {
            owners[i] = owner;
            return;
        }
    }
}

__attribute__((noinline)) static void share(void)
{
    for (int i = 0; i < 20; i++)
        own(i, malloc(77)); // is owned
}

__attribute__((noinline)) static void clear_stack(void)
{
    volatile char used[4096];
    memset((char *)used, 0, sizeof(used));
}

int main(void)
{
    static pthread_barrier_t barrier; // read by the thread when main() has returned
    pthread_t thread;

    lose();
    build();
    share();
    clear_stack();
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, work, &barrier); // is dtv
    pthread_barrier_wait(&barrier);
    return 0;
}
