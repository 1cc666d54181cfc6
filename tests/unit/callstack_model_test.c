// SPDX-License-Identifier: MIT
//
// The call stack against a model. The model is a machine with two threads, coroutine
// stacks that lie side by side, alternate signal stacks and borrowed stacks; it keeps the
// true frames of each. Random events act on both, and after each, or after some, the
// context's frames must be the model's, one by one.
#include "base/map.h"
#include "engine/callstack/callstack.h"

#include "unit.h"

enum {
    THREADS = 2,
    COROUTINES = 8,
    FRAMES = 200,
    STACK_BYTES = 1 << 16,
    RETS = 6, // few return addresses, so that stale entries often look right
    STACKS = THREADS * 3 + COROUTINES,
    SWAP_RET = 0x1000,
};

typedef struct Frame {
    GuestAddr slot, ret;
    GuestAddr interrupted_sp; // of a signal frame, else 0
} Frame;

typedef struct Stack {
    GuestAddr lo, hi, sp;
    Frame frames[FRAMES];
    u32 count;
    struct Stack *below; // what it continues
    bool started, running;
} Stack;

typedef struct Thread {
    CallStack cs;
    Stack *own, *alt, *borrowed, *current;
} Thread;

static Stack stacks[STACKS];
static Thread threads[THREADS];
static Map memory;
static u64 random_state;
static GuestAddr next_region, next_odd_pc;

static u64 below_random(u64 limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static bool peek(GuestAddr address, u64 *ret_word)
{
    *ret_word = 0;
    map_get(&memory, address, ret_word);
    return true;
}

static GuestAddr odd_pc(void) // no call ever returns there
{
    return next_odd_pc++;
}

static void play_ret(Thread *t, GuestAddr ret, GuestAddr slot)
{
    if (t->cs.top->ret == ret)
        t->cs.top--;
    else
        callstack_ret_miss(&t->cs, slot);
    t->current->sp = slot + 8;
}

static void add_frame(Stack *s, GuestAddr slot, GuestAddr ret, GuestAddr interrupted_sp)
{
    s->frames[s->count++] = (Frame){ slot, ret, interrupted_sp };
    s->sp = slot;
    map_put(&memory, slot, ret);
}

static bool has_room(const Stack *s)
{
    return s->count < FRAMES - 2 && s->sp - s->lo > 4096;
}

static void play_call(Thread *t, GuestAddr ret)
{
    Stack *s = t->current;

    add_frame(s, s->sp - 8, ret, 0);
    if (callstack_is_guard(&t->cs, t->cs.top + 1))
        callstack_overflow(&t->cs);
    t->cs.top[1].ret = ret;
    t->cs.top[1].sp = s->sp;
    t->cs.top[1].context = 0;
    t->cs.top++;
}

static void event_call(Thread *t)
{
    Stack *s = t->current;

    if (!has_room(s))
        return;
    s->sp -= 8 * below_random(20); // the frame, or alloca: nobody reports it
    play_call(t, 0x100 + below_random(RETS));
}

static void leave_for_below(Thread *t, GuestAddr sp, bool reported)
{
    Stack *s = t->current, *below = s->below;

    if (reported)
        callstack_load_sp(&t->cs, s->sp, sp, false);
    s->running = s->started = false;
    s->count = 0;
    t->current = below;
    below->sp = sp;
}

static void event_ret(Thread *t)
{
    Stack *s = t->current;

    if (s->count == 0)
        return;
    Frame frame = s->frames[--s->count];
    bool hijacked = below_random(50) == 0;
    if (frame.interrupted_sp == 0) {
        play_ret(t, hijacked ? odd_pc() : frame.ret, frame.slot);
        if (s == t->borrowed && s->count == 0) {
            // Unreported, it is `mov rsp, rbp`, soon followed by a ret.
            bool reported = s->below->count == 0 || below_random(2);
            leave_for_below(t, s->below->sp, reported);
            if (!reported)
                event_ret(t);
        }
        return;
    }
    play_ret(t, odd_pc(), frame.slot); // to the restorer
    if (s == t->alt && s->count == 0) {
        leave_for_below(t, frame.interrupted_sp, true);
    } else {
        callstack_load_sp(&t->cs, s->sp, frame.interrupted_sp, false);
        s->sp = frame.interrupted_sp;
    }
}

// longjmp and throw: down to a frame of this stack or of one it continues.
static void event_unwind(Thread *t)
{
    Stack *from = t->current, *s = from;

    while (s->below && below_random(2))
        s = s->below;
    if (s->count < 2 || (s == t->borrowed && s->count < 3))
        return;
    u32 keep = 1 + (u32)below_random(s->count - 1);
    GuestAddr sp = s->frames[keep].slot + 8;
    bool thrown = below_random(2);
    if (s->frames[keep].interrupted_sp != 0)
        sp = s->frames[keep].interrupted_sp;

    callstack_load_sp(&t->cs, from->sp, thrown ? sp - 8 : sp, false);
    while (t->current != s) {
        t->current->running = t->current->started = false;
        t->current->count = 0;
        t->current = t->current->below;
    }
    s->count = keep;
    s->sp = sp;
    if (thrown) // the unwinder returns to the landing pad
        play_ret(t, odd_pc(), sp - 8);
}

static void event_jump_by_ret(Thread *t)
{
    play_ret(t, odd_pc(), t->current->sp - 8);
}

static void event_signal(Thread *t)
{
    Stack *s = t->current;
    bool on_alt = s != t->alt && !t->alt->running && below_random(2);
    Stack *target = on_alt ? t->alt : s;
    GuestAddr pc = 0x2000 + below_random(4);

    if (!has_room(s))
        return;
    if (on_alt) {
        *target = (Stack){ .lo = target->lo, .hi = target->hi, .sp = target->hi, .below = s,
                           .started = true, .running = true };
    }
    GuestAddr slot = target->sp - 504;
    callstack_enter_signal(&t->cs, pc, s->sp, slot, on_alt ? t->alt->lo : 0);
    add_frame(target, slot, pc | CONTEXT_EXACT_PC, s->sp);
    t->current = target;
}

static void event_borrow(Thread *t)
{
    Stack *s = t->current, *target = t->borrowed;

    if (target->running || !has_room(s))
        return;
    *target = (Stack){ .lo = target->lo, .hi = target->hi, .sp = target->hi, .below = s,
                       .started = true, .running = true };
    callstack_load_sp(&t->cs, s->sp, target->hi, true);
    t->current = target;
    play_call(t, 0x100 + below_random(RETS));
}

static void resume(Thread *t, GuestAddr old_sp, Stack *target)
{
    t->current->running = false;
    t->current = target;
    target->running = true;
    if (!target->started) {
        target->started = true;
        target->count = 0;
        callstack_load_sp(&t->cs, old_sp, target->hi, false);
        play_ret(t, odd_pc(), target->hi);
        target->sp = target->hi;
        return;
    }
    callstack_load_sp(&t->cs, old_sp, target->sp, false);
    Frame frame = target->frames[--target->count]; // of swapcontext
    play_ret(t, frame.ret, frame.slot);
}

static Stack *any_coroutine(void)
{
    return &stacks[THREADS * 3 + below_random(COROUTINES)];
}

static void event_switch(Thread *t)
{
    Stack *s = t->current;
    Stack *target = below_random(3) == 0 ? t->own : any_coroutine();

    if (s->below || target->running || target == s || !has_room(s))
        return;
    play_call(t, SWAP_RET + below_random(2));
    resume(t, s->sp, target);
}

static void event_coroutine_ends(Thread *t)
{
    Stack *s = t->current;

    if (s == t->own || s->below || below_random(4) != 0)
        return;
    while (s->count > 0 && s->frames[s->count - 1].interrupted_sp == 0) {
        Frame frame = s->frames[--s->count];
        play_ret(t, frame.ret, frame.slot);
    }
    if (s->count > 0)
        return;
    play_ret(t, odd_pc(), s->hi); // to the trampoline of makecontext
    callstack_load_sp(&t->cs, s->hi + 8, s->hi + 16, false);
    s->started = false;
    resume(t, s->hi + 16, t->own);
}

// What Go does to a goroutine whose stack is too small.
static void event_move(Thread *t)
{
    Stack *s = any_coroutine();

    (void)t;
    if (s->running || !s->started || s->count < 2)
        return;
    u64 distance = next_region - s->lo;
    next_region += STACK_BYTES;
    for (u32 i = 0; i < s->count; i++) {
        map_remove(&memory, s->frames[i].slot);
        s->frames[i].slot += distance;
        if (s->frames[i].interrupted_sp)
            s->frames[i].interrupted_sp += distance;
        map_put(&memory, s->frames[i].slot, s->frames[i].ret);
    }
    s->lo += distance;
    s->hi += distance;
    s->sp += distance;
}

static void check_query(Thread *t)
{
    GuestAddr frames[CONTEXT_FRAMES_MAX];
    GuestAddr pc = 0x3000 + below_random(8);
    u32 id = callstack_context(&t->cs, pc, t->current->sp);
    size_t count = context_frames(id, frames, CONTEXT_FRAMES_MAX);
    size_t at = 0;

    callstack_validate(&t->cs);
    CHECK(count <= CONTEXT_FRAMES_MAX && frames[at++] == pc);
    for (const Stack *s = t->current; s; s = s->below) {
        for (u32 i = s->count; i-- > 0;) {
            CHECK(at < count);
            CHECK(frames[at++] == s->frames[i].ret);
        }
    }
    CHECK(at == count);
}

static void start_machine(u64 seed)
{
    random_state = seed * 0x9e3779b97f4a7c15ull + 1;
    next_region = 0x100000000000ull;
    next_odd_pc = 0x10000000;
    map_free(&memory);
    callstack_forget_range(0, ~0ull);
    callstack_set_peek(peek);
    for (u32 i = 0; i < STACKS; i++) {
        stacks[i] = (Stack){ .lo = next_region, .hi = next_region + STACK_BYTES - 64 };
        stacks[i].sp = stacks[i].hi;
        next_region += STACK_BYTES;
    }
    for (u32 i = 0; i < THREADS; i++) {
        Thread *t = &threads[i];
        callstack_free(&t->cs);
        t->own = t->current = &stacks[i * 3];
        t->alt = &stacks[i * 3 + 1];
        t->borrowed = &stacks[i * 3 + 2];
        t->own->started = t->own->running = true;
        CHECK(callstack_init(&t->cs, t->own->lo, t->own->hi));
    }
}

typedef void Event(Thread *t);

static void run_machine(u64 seed, u32 steps, u32 steps_per_query)
{
    // How often each happens, out of the sum.
    static const struct {
        Event *event;
        u32 weight;
    } events[] = {
        { event_call, 40 },   { event_ret, 34 },    { event_unwind, 3 },
        { event_signal, 3 },  { event_borrow, 2 },  { event_jump_by_ret, 3 },
        { event_switch, 10 }, { event_move, 1 },    { event_coroutine_ends, 4 },
    };

    start_machine(seed);
    for (u32 step = 0; step < steps; step++) {
        Thread *t = &threads[below_random(THREADS)];
        u32 pick = (u32)below_random(100), i = 0;
        while (pick >= events[i].weight)
            pick -= events[i++].weight;
        events[i].event(t);
        if (below_random(steps_per_query) == 0)
            check_query(t);
    }
}

TEST(stack_is_the_models_after_every_event)
{
    for (u64 seed = 1; seed <= 100; seed++)
        run_machine(seed, 4000, 1);
}

TEST(stack_is_the_models_when_seldom_asked)
{
    for (u64 seed = 1; seed <= 100; seed++)
        run_machine(seed + 1000, 4000, 50);
}
