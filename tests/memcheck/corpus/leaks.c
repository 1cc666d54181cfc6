// SPDX-License-Identifier: MIT
//
// Leaks of every kind, found when the program ends. Blocks are made by functions that leave nothing
// of them in registers or frames; what keeps a block is a static pointer.
// OPTIONS --leak-check=full --show-leak-kinds=all --leak-check-heuristics=none
// BUILD -pthread
#include "corpus.h"

#include <pthread.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

struct Link {
    struct Link *next;
    u64 pad[3];
};

static void *volatile kept, *volatile also_kept;
static __thread void *volatile kept_by_thread;

static NOINLINE void lose_one(void);
CASE(one_lost)
{
    lose_one();
}
static NOINLINE void lose_one(void)
{
    void *p = malloc(40); // EXPECT memcheck leak-definite bytes=40 blocks=1
    HIDE(p);
}

static NOINLINE void lose_one_of_realloc(void);
CASE(one_lost_that_realloc_made)
{
    lose_one_of_realloc();
}
static NOINLINE void lose_one_of_realloc(void)
{
    void *p = NULL;
    HIDE(p);
    p = realloc(p, 40); // EXPECT memcheck leak-definite bytes=40 blocks=1 top=malloc
    HIDE(p);
}

static NOINLINE void lose_three(void);
CASE(three_lost_at_one_place)
{
    lose_three();
}
static NOINLINE void lose_three(void)
{
    for (volatile int i = 0; i < 3; i++) {
        void *p = malloc(40); // EXPECT memcheck leak-definite bytes=120 blocks=3
        HIDE(p);
    }
}

CASE(none_lost)
{
    void *p = malloc(40);
    HIDE(p);
    free(p);
}

CASE(still_reachable)
{
    kept = malloc(50); // EXPECT memcheck leak-reachable bytes=50 blocks=1
}

CASE(still_reachable_chain)
{
    kept = malloc(32); // EXPECT memcheck leak-reachable bytes=32 blocks=1
    ((struct Link *)kept)->next = (struct Link *)malloc(33);
    // EXPECT memcheck leak-reachable bytes=33
}

CASE(possibly_lost)
{
    kept = (u8 *)malloc(50) + 10; // EXPECT memcheck leak-possible bytes=50 blocks=1
}

CASE(pointer_one_behind_the_end)
{
    kept = (u8 *)malloc(48) + 48; // EXPECT memcheck leak-definite bytes=48 blocks=1
}

CASE(pointer_to_last_byte)
{
    kept = (u8 *)malloc(48) + 47; // EXPECT memcheck leak-possible bytes=48 blocks=1
}

CASE(interior_and_start)
{
    kept = malloc(50); // EXPECT memcheck leak-reachable bytes=50 blocks=1
    also_kept = (u8 *)kept + 10;
}

static NOINLINE void lose_chain(void);
CASE(lost_chain)
{
    lose_chain();
}
static NOINLINE void lose_chain(void)
{
    struct Link *p = (struct Link *)calloc(1, 32);
    // EXPECT memcheck leak-definite bytes=65 indirect=33 blocks=1
    p->next = (struct Link *)calloc(1, 33); // EXPECT memcheck leak-indirect bytes=33 blocks=1
    HIDE(p);
}

static NOINLINE void lose_cycle(void);
CASE(lost_cycle)
{
    lose_cycle();
}
static NOINLINE void lose_cycle(void)
{
    struct Link *p = (struct Link *)calloc(1, 32);
    // MAYBE memcheck leak-definite blocks=1 MAYBE memcheck leak-indirect blocks=1
    p->next = (struct Link *)calloc(1, 32);
    // MAYBE memcheck leak-definite blocks=1 MAYBE memcheck leak-indirect blocks=1
    p->next->next = p;
    HIDE(p);
}

CASE(lost_by_overwriting)
{
    kept = malloc(10); // EXPECT memcheck leak-definite bytes=10 blocks=1
    kept = malloc(20); // EXPECT memcheck leak-reachable bytes=20 blocks=1
}

CASE(kept_in_mapping)
{
    void **p = (void **)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[77] = malloc(60); // EXPECT memcheck leak-reachable bytes=60 blocks=1
}

CASE(kept_in_unmapped_mapping)
{
    void **p = (void **)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[77] = malloc(60); // EXPECT memcheck leak-definite bytes=60 blocks=1
    munmap(p, 4096);
}

CASE(kept_in_thread_local)
{
    kept_by_thread = malloc(60); // EXPECT memcheck leak-reachable bytes=60 blocks=1
}

CASE(kept_on_the_stack_of_main)
{
    void *volatile p = malloc(61); // EXPECT memcheck leak-reachable bytes=61 blocks=1
    exit(0);
}

CASE(kept_misaligned_is_not_seen)
{
    static u8 space[32] __attribute__((aligned(16)));
    void *p = malloc(62); // EXPECT memcheck leak-definite bytes=62 blocks=1
    HIDE(p);
    memcpy(space + 4, &p, 8);
    __asm__ volatile("" : : "r"(space) : "memory");
    p = NULL;
    HIDE(p);
}

CASE(kept_in_freed_block)
{
    void **p = (void **)malloc(64);
    p[0] = malloc(63); // EXPECT memcheck leak-definite bytes=63 blocks=1
    HIDE(p);
    free(p);
}

static void *keep_and_wait(void *arg);
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
static volatile int ready;
CASE(kept_by_a_thread_that_runs)
{
    // OPTIONS --show-leak-kinds=definite
    pthread_t thread;
    pthread_mutex_lock(&never);
    pthread_create(&thread, NULL, keep_and_wait, NULL);
    while (!ready)
        usleep(1000);
    exit(0);
}
static void *keep_and_wait(void *arg)
{
    void *volatile p = malloc(70);
    ready = 1;
    pthread_mutex_lock(&never);
    free(p);
    return NULL;
}

// The same while it runs on a stack of its own, further up in the mapping of the first.
static void *keep_and_wait_elsewhere(void *arg);
CASE(kept_by_a_thread_on_another_stack)
{
    // OPTIONS --show-leak-kinds=definite
    // NOT-VALGRIND own-stacks
    enum { PIECE = 256 << 10 };
    pthread_t thread;
    pthread_attr_t attributes;
    u8 *both = mmap(NULL, 2 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, both, PIECE);
    pthread_create(&thread, &attributes, keep_and_wait_elsewhere, both + 2 * PIECE - 64);
    while (!ready)
        usleep(1000);
    exit(0);
}
static void *keep_and_wait_elsewhere(void *stack)
{
    void *volatile p = malloc(70);
    __asm__ volatile("movq %%rbx, %%r12\n\tmovq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\t"
                     "movl $1, %1\n\tmovl $34, %%eax\n\tsyscall\n\t" // pause
                     "movq %%rbx, %%rsp\n\tmovq %%r12, %%rbx"
                     : : "r"(stack), "m"(ready) : "rax", "rcx", "r11", "r12", "memory", "cc");
    free(p);
    return NULL;
}

static void *lose_in_thread(void *arg);
CASE(lost_by_a_thread)
{
    // OPTIONS --show-leak-kinds=definite
    pthread_t thread;
    pthread_create(&thread, NULL, lose_in_thread, NULL);
    pthread_join(thread, NULL);
}
static void *lose_in_thread(void *arg)
{
    void *p = malloc(71); // EXPECT memcheck leak-definite bytes=71 blocks=1
    HIDE(p);
    return NULL;
}

CASE(only_definite_shown)
{
    // OPTIONS --show-leak-kinds=definite
    kept = malloc(50);
    also_kept = (u8 *)malloc(50) + 10;
}

CASE(only_possible_shown)
{
    // OPTIONS --show-leak-kinds=possible
    kept = malloc(50);
    also_kept = (u8 *)malloc(51) + 10; // EXPECT memcheck leak-possible bytes=51 blocks=1
}

CASE(not_looked_for)
{
    // OPTIONS --leak-check=no --show-leak-kinds=none
    lose_one();
}

CASE(lost_by_realloc)
{
    void *p = malloc(80);
    kept = realloc(p, 90); // EXPECT memcheck leak-definite bytes=90 blocks=1
    kept = NULL;
}

CASE(lost_calloc_and_aligned)
{
    kept = calloc(3, 7); // EXPECT memcheck leak-definite bytes=21 blocks=1
    kept = aligned_alloc(64, 128); // EXPECT memcheck leak-definite bytes=128 blocks=1
    kept = NULL;
}

CASE(lost_strdup)
{
    kept = strdup("seven--"); // EXPECT memcheck leak-definite bytes=8 blocks=1
    kept = NULL;
}

CASE(tree_lost_whole)
{
    struct Link *root = (struct Link *)calloc(1, 32);
    // EXPECT memcheck leak-definite bytes=128 indirect=96 blocks=1
    for (volatile int i = 0; i < 3; i++)
        root->pad[i] = (u64)calloc(1, 32); // EXPECT memcheck leak-indirect bytes=96 blocks=3
    HIDE(root);
    root = NULL;
    HIDE(root);
}

CASE(many_kept)
{
    static void *volatile table[1000];
    for (volatile int i = 0; i < 1000; i++)
        table[i] = malloc(16); // EXPECT memcheck leak-reachable bytes=16000 blocks=1000
}

CASE(asked_for_by_request)
{
    long leaked = 0, dubious = 0, reachable = 0, suppressed = 0;
    kept = malloc(50); // EXPECT memcheck leak-reachable bytes=50 blocks=1
    VALGRIND_DO_QUICK_LEAK_CHECK;
    VALGRIND_COUNT_LEAKS(leaked, dubious, reachable, suppressed);
    CHECK(leaked == 0 && dubious == 0 && reachable >= 50);
}

// Chunks of a pool that gives pieces away: a piece lies in its chunk, and a pointer into the
// piece is one into the chunk as well. The chunk itself lies in a block of the heap, which does not
// count.
enum { CHUNK = 4096, PIECE = 256, PIECE_AT = 128, IN_CHUNK = 64 };
static int pool;

static NOINLINE u8 *make_pool(void)
{
    VALGRIND_CREATE_MEMPOOL_EXT(&pool, 0, 0,
                                VALGRIND_MEMPOOL_METAPOOL | VALGRIND_MEMPOOL_AUTO_FREE);
    return (u8 *)malloc(2 * CHUNK) + IN_CHUNK;
}

static NOINLINE void keep_inside_chunk(void);
CASE(chunk_kept_from_inside)
{
    keep_inside_chunk();
}
static NOINLINE void keep_inside_chunk(void)
{
    u8 *chunk = make_pool();
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-possible bytes=4096 blocks=1
    kept = chunk + 100;
    HIDE(chunk);
}

static NOINLINE void keep_inside_chunk_with_piece(void);
CASE(chunk_with_a_piece_kept_from_inside)
{
    keep_inside_chunk_with_piece();
}
static NOINLINE void keep_inside_chunk_with_piece(void)
{
    u8 *chunk = make_pool(), *piece = chunk + PIECE_AT;
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-possible bytes=4096 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(piece, PIECE, 0, 0);
    // EXPECT memcheck leak-definite bytes=256 blocks=1
    kept = piece + PIECE + 100;
    HIDE(chunk);
}

static NOINLINE void keep_chunk_with_piece(void);
CASE(chunk_with_a_piece_kept_by_its_start) // NOT-VALGRIND pieces-of-chunks
{
    keep_chunk_with_piece();
}
static NOINLINE void keep_chunk_with_piece(void)
{
    u8 *chunk = make_pool(), *piece = chunk + PIECE_AT;
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-reachable bytes=4096 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(piece, PIECE, 0, 0);
    // EXPECT memcheck leak-reachable bytes=256 blocks=1
    *(void **)chunk = piece;
    kept = chunk;
    HIDE(chunk);
}

static NOINLINE void keep_piece(void);
CASE(chunk_kept_by_its_piece) // NOT-VALGRIND pieces-of-chunks
{
    keep_piece();
}
static NOINLINE void keep_piece(void)
{
    u8 *chunk = make_pool(), *piece = chunk + PIECE_AT;
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-possible bytes=4096 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(piece, PIECE, 0, 0);
    // EXPECT memcheck leak-reachable bytes=256 blocks=1
    kept = piece;
    HIDE(chunk);
}

static NOINLINE void keep_first_piece(void);
CASE(chunk_and_its_first_piece_start_together) // NOT-VALGRIND pieces-of-chunks
{
    keep_first_piece();
}
static NOINLINE void keep_first_piece(void)
{
    u8 *chunk = make_pool();
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-reachable bytes=4096 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(chunk, PIECE, 0, 0);
    // EXPECT memcheck leak-reachable bytes=256 blocks=1
    kept = chunk;
    HIDE(chunk);
}

static NOINLINE void lose_chunk(void);
CASE(chunk_lost_with_its_pieces)
{
    lose_chunk();
}
static NOINLINE void lose_chunk(void)
{
    u8 *chunk = make_pool(), *first = chunk + PIECE_AT, *second = chunk + 2 * PIECE;
    VALGRIND_MEMPOOL_ALLOC(&pool, chunk, CHUNK);
    // EXPECT memcheck leak-definite bytes=4352 indirect=256 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(first, PIECE, 0, 0);
    // EXPECT memcheck leak-indirect bytes=256 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(second, 2 * PIECE, 0, 0);
    // EXPECT memcheck leak-definite bytes=512 blocks=1
    *(void **)chunk = first;
    HIDE(chunk);
    chunk = first = second = NULL;
    HIDE(chunk);
    HIDE(first);
    HIDE(second);
}

static NOINLINE void keep_piece_of_piece(void);
CASE(piece_within_a_piece)
{
    keep_piece_of_piece();
}
static NOINLINE void keep_piece_of_piece(void)
{
    u8 *outer = make_pool(), *inner = outer + 16;
    VALGRIND_MALLOCLIKE_BLOCK(outer, PIECE, 0, 0);
    // EXPECT memcheck leak-reachable bytes=256 blocks=1
    VALGRIND_MALLOCLIKE_BLOCK(inner, 32, 0, 0);
    // EXPECT memcheck leak-definite bytes=32 blocks=1
    kept = outer;
    HIDE(outer);
    HIDE(inner);
}
