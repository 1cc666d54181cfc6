// SPDX-License-Identifier: MIT
//
// The call stack by example: each way a program has of leaving a frame or a stack.
// Emitted code is played by push_call() and do_ret(), which do what callstack.h says it does.
#include "base/pages.h"
#include "engine/callstack/callstack.h"

#include "unit.h"

#define STACK_LO 0x700000000000ull
#define STACK_HI 0x700000100000ull
#define COROUTINE_HI 0x500000010000ull
#define ALT_LO 0x400000000000ull

static CallStack cs;

static void fresh(void)
{
    callstack_free(&cs);
    callstack_forget_range(0, ~0ull);
    CHECK(callstack_init(&cs, STACK_LO, STACK_HI));
}

static void push_call(CallStack *stack, GuestAddr ret, GuestAddr sp)
{
    if (callstack_is_guard(stack, stack->top + 1))
        callstack_overflow(stack);
    stack->top[1].ret = ret;
    stack->top[1].sp = sp;
    stack->top[1].context = 0;
    stack->top++;
}

static void do_ret(CallStack *stack, GuestAddr ret, GuestAddr slot)
{
    if (stack->top->ret == ret)
        stack->top--;
    else
        callstack_ret_miss(stack, slot);
}

static bool stack_is(GuestAddr pc, GuestAddr sp, const GuestAddr *expected, size_t count)
{
    GuestAddr frames[64];
    u32 id = callstack_context(&cs, pc, sp);

    callstack_validate(&cs);
    if (context_frames(id, frames, 64) != count + 1 || frames[0] != pc)
        return false;
    return memcmp(frames + 1, expected, count * sizeof(GuestAddr)) == 0;
}

#define CHECK_STACK(pc, sp, ...)                                                                   \
    CHECK(stack_is(pc, sp, (GuestAddr[]){ __VA_ARGS__ },                                           \
                   sizeof((GuestAddr[]){ __VA_ARGS__ }) / sizeof(GuestAddr)))

#define SP(offset) (STACK_HI - (offset))

TEST(calls_and_returns_are_followed)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    CHECK_STACK(0xa, SP(220), 2, 1);
    do_ret(&cs, 2, SP(200));
    CHECK_STACK(0xb, SP(150), 1);
    push_call(&cs, 3, SP(200));
    CHECK_STACK(0xa, SP(200), 3, 1);
}

TEST(same_stack_has_the_same_id)
{
    fresh();
    push_call(&cs, 1, SP(100));
    u32 first = callstack_context(&cs, 0xa, SP(120));
    do_ret(&cs, 1, SP(100));
    push_call(&cs, 1, SP(300));
    CHECK(callstack_context(&cs, 0xa, SP(320)) == first);
    CHECK(callstack_context(&cs, 0xb, SP(320)) != first);
}

TEST(longjmp_forgets_the_frames_it_left_even_if_deeper_calls_follow)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    push_call(&cs, 3, SP(300));
    callstack_load_sp(&cs, SP(320), SP(150), false);
    push_call(&cs, 4, SP(400));
    CHECK_STACK(0xa, SP(420), 4, 1);
}

TEST(unreported_unwinding_is_seen_by_the_next_call)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    push_call(&cs, 3, SP(300));
    CHECK_STACK(0xa, SP(320), 3, 2, 1);
    push_call(&cs, 4, SP(200));
    CHECK_STACK(0xa, SP(220), 4, 1);
}

TEST(return_without_a_call_pops_nothing)
{
    fresh();
    push_call(&cs, 1, SP(100));
    do_ret(&cs, 77, SP(108));
    do_ret(&cs, 78, SP(108));
    CHECK_STACK(0xa, SP(100), 1);
}

TEST(return_address_changed_by_the_client_still_ends_the_frame)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    do_ret(&cs, 99, SP(200));
    CHECK_STACK(0xa, SP(192), 1);
}

TEST(handler_on_the_alternate_stack_stands_on_what_it_interrupted)
{
    fresh();
    push_call(&cs, 1, SP(100));
    callstack_enter_signal(&cs, 0xa, SP(120), ALT_LO + 0x1000, ALT_LO);
    push_call(&cs, 2, ALT_LO + 0xf00);
    CHECK_STACK(0xb, ALT_LO + 0xe00, 2, 0xa | CONTEXT_EXACT_PC, 1);
    do_ret(&cs, 2, ALT_LO + 0xf00);
    do_ret(&cs, 0x999, ALT_LO + 0x1000); // to the restorer
    callstack_load_sp(&cs, ALT_LO + 0x1008, SP(120), false);
    CHECK_STACK(0xa, SP(120), 1);
}

TEST(siglongjmp_leaves_the_alternate_stack)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    for (int i = 0; i < 100; i++) {
        callstack_enter_signal(&cs, 0xa, SP(220), ALT_LO + 0x1000, ALT_LO);
        push_call(&cs, 3, ALT_LO + 0xf00);
        CHECK_STACK(0xb, ALT_LO + 0xe00, 3, 0xa | CONTEXT_EXACT_PC, 2, 1);
        callstack_load_sp(&cs, ALT_LO + 0xe00, SP(150), false);
        CHECK_STACK(0xa, SP(150), 1);
        push_call(&cs, 2, SP(200));
    }
}

TEST(alternate_stack_in_a_local_array_is_still_another_stack)
{
    fresh();
    push_call(&cs, 1, SP(0x5000));
    callstack_enter_signal(&cs, 0xa, SP(0x5010), SP(0x1000), SP(0x3000));
    push_call(&cs, 2, SP(0x1100));
    CHECK_STACK(0xb, SP(0x1200), 2, 0xa | CONTEXT_EXACT_PC, 1);
    do_ret(&cs, 2, SP(0x1100));
    do_ret(&cs, 0x999, SP(0x1000));
    callstack_load_sp(&cs, SP(0xff8), SP(0x5010), false);
    CHECK_STACK(0xa, SP(0x5010), 1);
}

TEST(coroutine_has_its_own_stack_and_finds_it_again)
{
    fresh();
    push_call(&cs, 1, SP(100));
    for (int i = 0; i < 50; i++) {
        push_call(&cs, 2, SP(200)); // call swapcontext
        callstack_load_sp(&cs, SP(200), i == 0 ? COROUTINE_HI : COROUTINE_HI - 92, false);
        if (i > 0)
            do_ret(&cs, 12, COROUTINE_HI - 100);
        if (i == 0) {
            do_ret(&cs, 0x5555, COROUTINE_HI); // setcontext "returns" to the function
            push_call(&cs, 11, COROUTINE_HI - 50);
        }
        CHECK_STACK(0xc, COROUTINE_HI - 60, 11);
        push_call(&cs, 12, COROUTINE_HI - 100); // swapcontext back
        CHECK_STACK(0xd, COROUTINE_HI - 100, 12, 11);
        callstack_load_sp(&cs, COROUTINE_HI - 100, SP(200), false);
        do_ret(&cs, 2, SP(200));
        CHECK_STACK(0xa, SP(150), 1);
    }
}

TEST(function_run_on_another_stack_keeps_its_callers)
{
    fresh();
    push_call(&cs, 1, SP(100));
    push_call(&cs, 2, SP(200));
    callstack_load_sp(&cs, SP(220), COROUTINE_HI, true);
    push_call(&cs, 3, COROUTINE_HI - 8);
    CHECK_STACK(0xc, COROUTINE_HI - 60, 3, 2, 1);
    do_ret(&cs, 3, COROUTINE_HI - 8);
    do_ret(&cs, 2, SP(200)); // mov rsp, rbp is not reported
    CHECK_STACK(0xa, SP(192), 1);
}

static GuestAddr moved_slot_base;

static bool peek_moved(GuestAddr address, u64 *ret_word)
{
    if (address == moved_slot_base - 50)
        *ret_word = 11;
    else if (address == moved_slot_base - 100)
        *ret_word = 12;
    else
        *ret_word = 0;
    return true;
}

TEST(stack_copied_elsewhere_keeps_its_frames)
{
    fresh();
    callstack_set_peek(peek_moved);
    push_call(&cs, 1, SP(100));
    callstack_load_sp(&cs, SP(120), COROUTINE_HI, false);
    push_call(&cs, 11, COROUTINE_HI - 50);
    push_call(&cs, 12, COROUTINE_HI - 100);
    push_call(&cs, 13, COROUTINE_HI - 120); // asks for more stack
    callstack_load_sp(&cs, COROUTINE_HI - 120, SP(120), false);
    moved_slot_base = COROUTINE_HI + 0x100000;
    callstack_load_sp(&cs, SP(120), moved_slot_base - 100, false);
    CHECK_STACK(0xe, moved_slot_base - 100, 12, 11);
    do_ret(&cs, 12, moved_slot_base - 100);
    CHECK_STACK(0xe, moved_slot_base - 90, 11);
    callstack_set_peek(NULL);
}

TEST(goroutine_continues_on_another_thread)
{
    static CallStack other;

    fresh();
    callstack_init(&other, STACK_LO - MiB * 64, STACK_LO - MiB * 32);
    callstack_load_sp(&cs, SP(120), COROUTINE_HI, false);
    push_call(&cs, 11, COROUTINE_HI - 50);
    callstack_load_sp(&cs, COROUTINE_HI - 60, SP(120), false);
    callstack_load_sp(&other, STACK_LO - MiB * 40, COROUTINE_HI - 60, false);
    u32 id = callstack_context(&other, 0xa, COROUTINE_HI - 60);
    CHECK(context_pc(context_parent(id)) == 11);
    CHECK(context_parent(callstack_context(&cs, 0xb, SP(100))) == 0);
    callstack_free(&other);
}

TEST(ten_million_frames_with_a_query_at_each_take_bounded_memory)
{
    enum { DEPTH = 10000000 };
    GuestAddr sp = 0x7f0000000000ull;
    GuestAddr frames[CONTEXT_FRAMES_MAX];

    callstack_free(&cs);
    CHECK(callstack_init(&cs, 0x600000000000ull, sp));
    u32 before = context_count();
    for (u32 i = 0; i < DEPTH; i++) {
        push_call(&cs, 0x10 + i % 3, sp -= 32);
        u32 here = callstack_context(&cs, 0xa, sp);
        if (i % 997 != 0)
            continue;
        size_t shown = context_frames(here, NULL, 0);
        CHECK(shown == i + 2 || (shown >= 1500 && shown <= CONTEXT_FRAMES_MAX));
    }
    CHECK(cs.open_entries == CALLSTACK_ENTRIES_MAX);
    CHECK(context_count() - before < 20000);
    u32 id = callstack_context(&cs, 0xa, sp);
    size_t count = context_frames(id, frames, CONTEXT_FRAMES_MAX);
    CHECK(frames[1] == 0x10 + (DEPTH - 1) % 3 && frames[count - 1] == 0x10);
    for (u32 i = DEPTH; i-- > 0; sp += 32) {
        do_ret(&cs, 0x10 + i % 3, sp);
        if (i % 1000 == 0)
            callstack_context(&cs, 0xa, sp + 8);
    }
    callstack_context(&cs, 0xb, sp);
    CHECK(cs.top == cs.bottom && !cs.omitted);
}

TEST(deep_stack_names_its_innermost_and_outermost_frames)
{
    enum { DEPTH = 5000 };
    GuestAddr frames[CONTEXT_FRAMES_MAX];
    GuestAddr sp = STACK_HI;

    fresh();
    for (u32 i = 1; i <= DEPTH; i++)
        push_call(&cs, i, sp -= 16);
    size_t count = context_frames(callstack_context(&cs, 9999, sp), frames, CONTEXT_FRAMES_MAX);
    CHECK(count <= CONTEXT_FRAMES_MAX && frames[0] == 9999);
    size_t i = 1;
    for (; frames[i] != CONTEXT_OMITTED_PC; i++)
        CHECK(frames[i] == DEPTH + 1 - i);
    CHECK(i >= 1024);
    CHECK(count - 1 - i == 512);
    for (i++; i < count; i++)
        CHECK(frames[i] == count - i);
}
