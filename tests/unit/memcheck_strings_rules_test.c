// SPDX-License-Identifier: MIT
//
// What the model does not say of the string functions: arguments that are undefined, when the
// original runs instead, letters, and that a copy that faults can be made again.
#include "memcheck_strings_world.h"

static u64 put_text(u64 offset, const char *text)
{
    memcpy((void *)(ARENA_START + offset), text, strlen(text) + 1);
    return ARENA_START + offset;
}

static void fresh(void)
{
    world_start();
    memset((void *)ARENA_START, 0, ARENA_BYTES);
    shadow_make_defined(ARENA_START, ARENA_BYTES);
    memset(world_definedness, 0, sizeof(*world_definedness));
    world_memcheck.told_entry = 0;
}

static void make_undefined(unsigned reg)
{
    world_definedness->gpr[reg] = ~0ull;
    world_definedness->set |= MEMBER_GPR(reg);
}

static u64 run(const char *name, u64 a, u64 b, u64 c, u64 d, bool *ret_declined)
{
    ToolCall call;
    u64 result = world_call(name, (u64[4]){a, b, c, d}, &call);
    *ret_declined = call.run_original;
    return result;
}

static u64 result_of(const char *name, u64 a, u64 b, u64 c, u64 d)
{
    bool declined;
    u64 result = run(name, a, b, c, d, &declined);
    if (declined)
        FAIL("%s has declined", name);
    return result;
}

static bool declines(const char *name, u64 a, u64 b, u64 c, u64 d)
{
    bool declined;
    run(name, a, b, c, d, &declined);
    return declined;
}

// ---------------------------------------------------------------------- arguments

TEST(an_undefined_pointer_is_the_use_of_a_value)
{
    fresh();
    u64 s = put_text(0, "abc");
    make_undefined(RDI);
    CHECK_EQ(result_of("strlen", s, 0, 0, 0), 3);
    CHECK(told.value && !told.condition);
    CHECK_EQ(world_definedness->set, 0);
}

TEST(an_undefined_length_is_a_condition)
{
    fresh();
    u64 s = put_text(0, "abc");
    make_undefined(RDX);
    result_of("memcpy", s + 100, s, 3, 0);
    CHECK(told.condition && !told.value);
}

TEST(pointers_do_not_matter_when_there_is_nothing_to_do)
{
    fresh();
    make_undefined(RDI);
    make_undefined(RSI);
    CHECK_EQ(result_of("memcpy", 0x1234, 0x99, 0, 0), 0x1234);
    CHECK(!told.value && !told.condition && !told.read && !told.write);
}

TEST(an_undefined_value_is_set_and_not_told_of)
{
    fresh();
    world_definedness->gpr[RSI] = 0x0f;
    world_definedness->set = MEMBER_GPR(RSI);
    result_of("memset", ARENA_START + 3, 0x41, 21, 0);
    CHECK(!told.condition && !told.value);
    CHECK_EQ(*shadow_of(ARENA_START + 2), 0);
    CHECK_EQ(*shadow_of(ARENA_START + 3), 0x0f);
    CHECK_EQ(*shadow_of(ARENA_START + 23), 0x0f);
    CHECK_EQ(*shadow_of(ARENA_START + 24), 0);
}

TEST(an_undefined_needle_is_a_condition)
{
    fresh();
    u64 s = put_text(0, "abc");
    world_definedness->gpr[RSI] = 0xff00; // not the byte that counts
    world_definedness->set = MEMBER_GPR(RSI);
    result_of("memchr", s, 'b', 3, 0);
    CHECK(!told.condition);
    make_undefined(RSI);
    result_of("memchr", s, 'b', 3, 0);
    CHECK(told.condition);
}

// -------------------------------------------------------------------- fortified

TEST(a_destination_that_is_too_small_is_left_to_the_original)
{
    fresh();
    u64 s = put_text(0, "abcdef"), d = put_text(100, "xy");
    CHECK(declines("__memcpy_chk", d, s, 7, 6));
    CHECK(declines("__memset_chk", d, 0, 7, 6));
    CHECK(declines("__strcpy_chk", d, s, 6, 0));
    CHECK(declines("__strcat_chk", d, s, 8, 0));
    CHECK(declines("__strncpy_chk", d, s, 7, 6));
    CHECK(declines("__strncat_chk", d, s, 3, 5));
    CHECK(declines("__wmemcpy_chk", d, s, 3, 2));
    CHECK(memcmp((void *)d, "xy", 3) == 0);
}

TEST(a_destination_that_is_large_enough_is_not)
{
    fresh();
    u64 s = put_text(0, "abcdef"), d = put_text(100, "xy");
    CHECK_EQ(result_of("__strcat_chk", d, s, 9, 0), d);
    CHECK_STR((char *)d, "xyabcdef");
    CHECK_EQ(result_of("__strcpy_chk", d, s, 7, 0), d);
    CHECK_EQ(result_of("__stpcpy_chk", d, s, 7, 0), d + 6);
    CHECK_EQ(result_of("__strncpy_chk", d, s, 2, 2), d);
    CHECK_EQ(result_of("__mempcpy_chk", d, s, 4, 4), d + 4);
    CHECK_EQ(result_of("__explicit_bzero_chk", d, 5, 5, 0), d);
    CHECK_EQ(*(u8 *)d, 0);
}

// ------------------------------------------------------------------------ letters

TEST(letters_are_folded_as_far_as_every_locale_agrees)
{
    fresh();
    u64 a = put_text(0, "Hello, WORLD"), b = put_text(100, "hELLO, world"),
        c = put_text(200, "hello, xorld");
    CHECK_EQ(result_of("strcasecmp", a, b, 0, 0), 0);
    CHECK_EQ((i32)result_of("strcasecmp", a, c, 0, 0), 'w' - 'x');
    CHECK_EQ(result_of("strncasecmp", a, c, 7, 0), 0);
    CHECK_EQ(result_of("strcasestr", b, put_text(300, "WoRL"), 0, 0), b + 7);
    CHECK_EQ(result_of("strcasestr", b, put_text(300, "WoRM"), 0, 0), 0);
}

TEST(letters_that_only_libc_knows_are_left_to_it)
{
    fresh();
    CHECK(declines("strcasecmp", put_text(0, "\xc4"), put_text(100, "\xe4"), 0, 0));
    CHECK(declines("strcasecmp", put_text(0, "I"), put_text(100, "i"), 0, 0));
    CHECK_EQ(result_of("strcasecmp", put_text(0, "\xc4I"), put_text(100, "\xc4I"), 0, 0), 0);
}

// ------------------------------------------------------------------- bad pointers

TEST(a_pointer_to_nowhere_is_told_of_and_left_to_the_original)
{
    static const char *readers[] = {"strlen", "strchr", "strrchr", "wcslen", "rawmemchr"};
    static const u64 nowhere[] = {0, 8, ARENA_START + ARENA_BYTES, CLIENT_END, CLIENT_END - 1,
                                  0x355555555555ull, 0x3333333333333333ull, ~0ull};
    fresh();
    for (size_t n = 0; n < ARRAY_LEN(nowhere); n++) {
        for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
            told.read = 1;
            CHECK(declines(readers[i], nowhere[n], 'x', 0, 0));
            CHECK_EQ(told.read, nowhere[n]);
            CHECK_EQ(world_memcheck.told_entry, 0x401000);
        }
        CHECK(declines("memset", nowhere[n], 0, 10, 0));
        CHECK_EQ(told.write, nowhere[n]);
        CHECK(declines("memcpy", nowhere[n], ARENA_START, 10, 0));
        CHECK_EQ(told.write, nowhere[n]);
        CHECK(declines("memcpy", ARENA_START, nowhere[n], 10, 0));
        CHECK_EQ(told.read, nowhere[n]);
        CHECK(declines("memcmp", ARENA_START, nowhere[n], 10, 0));
        CHECK_EQ(told.read, nowhere[n]);
    }
}

TEST(a_negative_length_reaches_the_end_of_what_is_there)
{
    fresh();
    CHECK(declines("memset", ARENA_START, 0, (u64)-5, 0));
    CHECK_EQ(told.write, ARENA_START + ARENA_BYTES);
    CHECK(declines("memcpy", ARENA_START, ARENA_START + 100, (u64)-1, 0));
    CHECK_EQ(told.read, ARENA_START + ARENA_BYTES);
    CHECK(declines("wmemset", ARENA_START, 0, 1ull << 62, 0));
    CHECK_EQ(told.write, ARENA_START + ARENA_BYTES);
    CHECK(declines("memrchr", ARENA_START, 'x', (u64)-1, 0));
    // And no limit at all is one that many programs have.
    put_text(0, "abc");
    CHECK_EQ(result_of("strnlen", ARENA_START, (u64)-1, 0, 0), 3);
    CHECK_EQ(result_of("memchr", ARENA_START, 'c', (u64)-1, 0), ARENA_START + 2);
}

TEST(an_overlapping_copy_that_faults_has_changed_nothing)
{
    fresh();
    u64 page = ARENA_START + 4096;
    for (u64 i = 0; i < 2 * 4096; i++)
        *(u8 *)(ARENA_START + i) = (u8)(i * 7);
    u8 before[4096];
    memcpy(before, (void *)ARENA_START, sizeof(before));
    CHECK(mprotect((void *)page, 4096, PROT_READ) == 0);
    bool all = declines("memmove", page - 100, page - 150, 200, 0) &&
               declines("memmove", page - 150, page - 100, 200, 0) &&
               declines("memmove", page - 5, page - 9, 12, 0) &&
               declines("memmove", page - 2000, page - 2300, 2500, 0);
    CHECK(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) == 0);
    CHECK(all);
    CHECK(memcmp(before, (void *)ARENA_START, sizeof(before)) == 0);
    CHECK(!told.read && !told.write); // the shadow has nothing against it
}

TEST(memory_below_the_stack_may_not_be_touched)
{
    fresh();
    u64 sp = ARENA_START + 4096;
    world_memcheck.stack_lo = ARENA_START;
    world_memcheck.first_sp = sp + 512;
    world_memcheck.stack_hi = ARENA_START + ARENA_BYTES;
    world_thread.gpr[RSP] = sp;
    memset(shadow_of(ARENA_START), 0xff, 4096);
    result_of("memset", sp - 200, 0, 100, 0);
    CHECK_EQ(told.write, sp - 200);
    CHECK_EQ(*shadow_of(sp - 129), 0xff); // K1
    CHECK_EQ(*shadow_of(sp - 128), 0);    // the red zone
    told.write = 0;
    world_thread.gpr[RSP] = world_memcheck.first_sp + 512; // on another stack
    result_of("memset", sp - 200, 0, 100, 0);
    CHECK_EQ(told.write, 0);
    CHECK_EQ(*shadow_of(sp - 129), 0);
    world_memcheck.stack_lo = world_memcheck.first_sp = world_memcheck.stack_hi = 0;
    world_thread.gpr[RSP] = 0x1000;
}

TEST(a_search_in_repetitive_data_is_left_to_libc)
{
    fresh();
    memset((void *)ARENA_START, 'a', 8000);
    memset((void *)(ARENA_START + 8192), 'a', 1000);
    *(u8 *)(ARENA_START + 9192) = 'b';
    CHECK(declines("strstr", ARENA_START, ARENA_START + 8192, 0, 0));
}

// --------------------------------------------------------------------- quick forms

// Calls quick(args[0] … args[3]) and returns the registers that it has changed, or'ed; not rax.
u64 registers_changed(ToolQuickFn *quick, const u64 args[4]);
__asm__(".text\n"
        "registers_changed:\n"
        "    push %rbx\n"
        "    push %rsi\n"
        "    sub $8, %rsp\n" // a multiple of 16
        "    mov %rdi, %rax\n"
        "    mov (%rsi), %rdi\n"
        "    mov 16(%rsi), %rdx\n"
        "    mov 24(%rsi), %rcx\n"
        "    mov 8(%rsi), %rsi\n"
        "    mov $0x103, %ebx\n"
        "    mov $0x108, %r8d\n"
        "    mov $0x109, %r9d\n"
        "    mov $0x10a, %r10d\n"
        "    mov $0x10b, %r11d\n"
        "    call *%rax\n"
        "    mov 8(%rsp), %rax\n"
        "    sub (%rax), %rdi\n"
        "    sub 8(%rax), %rsi\n"
        "    sub 16(%rax), %rdx\n"
        "    sub 24(%rax), %rcx\n"
        "    sub $0x103, %rbx\n"
        "    sub $0x108, %r8\n"
        "    sub $0x109, %r9\n"
        "    sub $0x10a, %r10\n"
        "    sub $0x10b, %r11\n"
        "    mov %rdi, %rax\n"
        "    or %rsi, %rax\n"
        "    or %rdx, %rax\n"
        "    or %rcx, %rax\n"
        "    or %rbx, %rax\n"
        "    or %r8, %rax\n"
        "    or %r9, %rax\n"
        "    or %r10, %rax\n"
        "    or %r11, %rax\n"
        "    add $16, %rsp\n"
        "    pop %rbx\n"
        "    ret\n");

TEST(a_quick_form_keeps_all_registers)
{
    static const u64 sizes[] = {0, 1, 3, 7, 8, 16, 20, 40, 100, 600};
    u32 count = 0;
    fresh();
    memset((void *)ARENA_START, 'a', ARENA_BYTES - 1);
    for (u32 i = 0; i < MEMCHECK_FUNCTIONS; i++) {
        for (u32 k = 0; memcheck_functions[i].quick && k < 2 * ARRAY_LEN(sizes); k++) {
            u64 args[4] = {ARENA_START, ARENA_START + 4096, sizes[k / 2], sizes[k / 2]};
            shadow_make_defined(ARENA_START, ARENA_BYTES);
            if (k & 1)
                shadow_make_undefined(ARENA_START, 4096);
            CHECK_EQ(registers_changed(memcheck_functions[i].quick, args), 0);
            count++;
        }
    }
    CHECK(count > 0);
}

TEST(undefined_memory_that_is_copied_to_is_defined_quickly)
{
    fresh();
    for (u64 size = 1; size <= 32; size++) {
        u64 to = ARENA_START + 100 + size, before = world_quick_count;
        shadow_make_undefined(ARENA_START + 90, 100);
        result_of("memcpy", to, ARENA_START + 1000, size, 0);
        CHECK_EQ(shadow_first_undefined(to, size), to + size);
        CHECK_EQ(*shadow_of(to - 1), 0xff);
        CHECK_EQ(*shadow_of(to + size), 0xff);
        shadow_make_undefined(to, size);
        result_of("memset", to, 'x', size, 0);
        CHECK_EQ(shadow_first_undefined(to, size), to + size);
        CHECK_EQ(*shadow_of(to + size), 0xff);
        CHECK_EQ(world_quick_count, before + 2);
    }
}

TEST(what_is_undefined_or_overlaps_is_not_for_the_quick_form)
{
    fresh();
    u64 s = put_text(100, "abcdefgh"), before = world_quick_count;
    result_of("memmove", s + 1, s, 8, 0);
    make_undefined(RDX);
    result_of("memcpy", s + 100, s, 8, 0);
    fresh();
    shadow_make_undefined(s + 3, 1);
    result_of("memcpy", s + 100, s, 8, 0);
    result_of("memcmp", s + 200, s, 8, 0);
    shadow_make_noaccess(s + 300, 1);
    result_of("memset", s + 299, 0, 8, 0);
    CHECK_EQ(world_quick_count, before);
}
