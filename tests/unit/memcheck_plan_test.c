// SPDX-License-Identifier: MIT
//
// What memcheck plans to insert into a block, pass by pass: of each one case in which it acts, and
// one in which it must not. A plan is compared as text, as --trace=plan prints it, without
// addresses and bytes of instructions.
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/translate/builder.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/translate/plan.h"
#include "tools/memcheck/translate/translate.h"
#include "tools/tools.h"

#include "unit.h"

enum { CODE = 0x10000000, CODE_BYTES = 4096, TEXT_BYTES = 16384 };

static Options options;
static Builder builder;
static Block block;
static Plan plan;
static char text[TEXT_BYTES];

static void set_up(void)
{
    if (memcheck_options)
        return;
    memcheck_options = &options;
    // Passes look at code on both sides, and nothing here survives a fault.
    void *around = (void *)(CODE - CODE_BYTES);
    CHECK(mmap(around, 3 * CODE_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == around);
    decode_init();
    aspace_init();
    tool = &tool_memcheck;
}

// The line of an instruction begins with two blanks, its address and its bytes; that of an item
// with four blanks.
static void add_line(const char *line)
{
    enum { TEXT_COLUMN = 47 };
    size_t size = strlen(text);
    const char *what = line;
    if (line[0] != ' ')
        return;
    if (line[2] == ' ')
        what = line + 2;
    else
        what = strlen(line) > TEXT_COLUMN ? line + TEXT_COLUMN : "?";
    snprintf(text + size, sizeof(text) - size, "%s\n", what);
}

static void decode_all(const u8 *bytes, size_t size)
{
    Builder *b = &builder;
    memset((void *)CODE, 0xcc, CODE_BYTES);
    memcpy((void *)CODE, bytes, size);
    decode_forget();
    b->insn_count = 0;
    for (GuestAddr pc = CODE; pc < CODE + size; pc += b->insns[b->insn_count++].len)
        CHECK(decode_shared(pc, (const u8 *)pc, DECODE_BYTES_MAX, &b->insns[b->insn_count]) ==
              DECODE_OK);
    b->next_pc = CODE + size;
}

static void make_plan(const u8 *bytes, size_t size, u32 version)
{
    static u8 code[64 * KiB];
    Builder *b = &builder;
    decode_all(bytes, size);
    block.pc = CODE;
    block.version = version;
    b->block = &block;
    b->insn = b->insns;
    b->guard_count = b->mark_count = 0;
    b->e = (Emitter){.pc = code, .end = code + sizeof(code)};
    find_live_flags(b);
    plan_make(&plan, b, b->insns, b->insn_count);
    text[0] = 0;
    plan_print(&plan, add_line);
}

// Memcheck as it is without options, in a block of this version.
static void check(u32 version, const char *wanted, const u8 *bytes, size_t size)
{
    set_up();
    options = (Options){.undef_value_errors = true};
    make_plan(bytes, size, version);
    CHECK_STR(text, wanted);
}

// In a block where all guards have failed often.
static void check_often(const char *wanted, const u8 *bytes, size_t size)
{
    set_up();
    if (!__builtin_cpu_supports("bmi2"))
        return; // there are no such blocks then
    options = (Options){.undef_value_errors = true, .stress = STRESS_OFTEN};
    make_plan(bytes, size, 0);
    CHECK_STR(text, wanted);
}

static u32 version_of(MemberSet set)
{
    set_up();
    return version_number(set);
}

#define BYTES(...) (const u8[]){__VA_ARGS__}, sizeof((const u8[]){__VA_ARGS__})
#define RET 0xc3

// ---------------------------------------------------------------------- the checks

TEST(a_load_has_a_guard)
{
    check(0,
          "  guard 8 bytes at [rdi]\n"
          "mov rax, [rdi]\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x07, RET));
}

TEST(an_address_alone_has_none)
{
    check(0,
          "lea rax, [rdi]\n"
          "ret\n",
          BYTES(0x48, 0x8d, 0x07, RET));
}

TEST(a_store_is_checked_and_one_to_the_frame_only_marked)
{
    check(0,
          "  check the store of 4 bytes at [rdi]\n"
          "mov [rdi], eax\n"
          "  define 4 bytes at [rsp+0x8]\n"
          "mov [rsp+0x08], eax\n"
          "ret\n",
          BYTES(0x89, 0x07, 0x89, 0x44, 0x24, 0x08, RET));
}

TEST(the_canary_of_the_stack_is_not_asked_for_and_other_thread_local_memory_is)
{
    check(0,
          "mov rax, fs:[0x0000000000000028]\n"
          "  guard 8 bytes at fs:[0x40]\n"
          "mov rcx, fs:[0x0000000000000040]\n"
          "ret\n",
          BYTES(0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x64, 0x48, 0x8b, 0x0c, 0x25, 0x40, 0,
                0, 0, RET));
}

TEST(a_load_is_only_checked_where_values_do_not_matter)
{
    static const u8 bytes[] = {0x48, 0x8b, 0x07, RET};
    set_up();
    options = (Options){.undef_value_errors = false};
    make_plan(bytes, sizeof(bytes), 0);
    CHECK_STR(text, "  check the load of 8 bytes at [rdi]\n"
                       "mov rax, [rdi]\n"
                       "ret\n");
}

TEST(a_string_instruction_is_a_step)
{
    check(0,
          "  call the step of a string\n"
          "rep movsb\n"
          "ret\n",
          BYTES(0xf3, 0xa4, RET));
}

// ------------------------------------------------------------------- what is known

TEST(what_one_guard_has_found_no_other_asks_for)
{
    check(0,
          "  guard 8 bytes at [rdi]\n"
          "mov rax, [rdi]\n"
          "add rdi, 0x08\n"
          "mov rcx, [rdi-0x08]\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x8b, 0x4f, 0xf8, RET));
}

TEST(a_register_that_is_loaded_leads_to_another_place)
{
    check(0,
          "  guard 8 bytes at [rdi]\n"
          "mov rdi, [rdi]\n"
          "  guard 8 bytes at [rdi]\n"
          "mov rcx, [rdi]\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x3f, 0x48, 0x8b, 0x0f, RET));
}

// -------------------------------------------------------------- guards that move ahead

TEST(a_guard_stands_before_the_flags_that_it_would_have_to_keep)
{
    check(0,
          "  guard early 8 bytes at [rsi]\n"
          "cmp edi, 0x01\n"
          "mov rax, [rsi]\n"
          "jz 0x10000009\n"
          "ret\n",
          BYTES(0x83, 0xff, 0x01, 0x48, 0x8b, 0x06, 0x74, 0x01, RET));
}

TEST(a_guard_does_not_pass_what_makes_its_address)
{
    check(0,
          "cmp edi, 0x01\n"
          "mov rsi, rdx\n"
          "  guard 8 bytes at [rsi]\n"
          "mov rax, [rsi]\n"
          "jz 0x1000000c\n"
          "ret\n",
          BYTES(0x83, 0xff, 0x01, 0x48, 0x89, 0xd6, 0x48, 0x8b, 0x06, 0x74, 0x01, RET));
}

TEST(loads_side_by_side_have_one_guard)
{
    check(0,
          "  guard early 2 bytes at [rdi]\n"
          "movzx eax, byte ptr [rdi]\n"
          "movzx ecx, byte ptr [rdi+0x01]\n"
          "ret\n",
          BYTES(0x0f, 0xb6, 0x07, 0x0f, 0xb6, 0x4f, 0x01, RET));
}

TEST(loads_apart_have_two)
{
    check(0,
          "  guard 1 bytes at [rdi]\n"
          "movzx eax, byte ptr [rdi]\n"
          "  guard 1 bytes at [rdi+0x2]\n"
          "movzx ecx, byte ptr [rdi+0x02]\n"
          "ret\n",
          BYTES(0x0f, 0xb6, 0x07, 0x0f, 0xb6, 0x4f, 0x02, RET));
}

// ------------------------------------------------------------------------- the stack

TEST(a_frame_that_is_given_up_is_marked_and_one_that_is_opened_is_not)
{
    check(0,
          "sub rsp, 0x10\n"
          "  mark as left 16 bytes at [rsp]\n"
          "add rsp, 0x10\n"
          "ret\n",
          BYTES(0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, RET));
}

TEST(leave_marks_by_the_frame_pointer)
{
    check(0,
          "  guard 8 bytes at hidden [rbp]\n"
          "  call the mark of a frame by rbp\n"
          "leave\n"
          "ret\n",
          BYTES(0xc9, RET));
}

// ----------------------------------------------------------------------- dirty blocks

TEST(a_dirty_block_has_steps_where_its_set_is_touched_and_nowhere_else)
{
    check(version_of(MEMBER_GPR(RAX)),
          "  call the move\n"
          "mov rcx, rax\n"
          "add rsi, rdx\n"
          "  call the step\n"
          "add rdx, rax\n"
          "  forget {rcx, flags}\n"
          "ret\n",
          BYTES(0x48, 0x89, 0xc1, 0x48, 0x01, 0xd6, 0x48, 0x01, 0xc2, RET));
}

TEST(what_is_overwritten_is_forgotten_without_a_step)
{
    check(version_of(MEMBER_GPR(RDX)),
          "  forget {rdx}\n"
          "mov edx, 0x05\n"
          "mov rcx, rdx\n"
          "ret\n",
          BYTES(0xba, 5, 0, 0, 0, 0x48, 0x89, 0xd1, RET));
}

TEST(what_is_overwritten_has_a_step_where_flags_are_live)
{
    check(version_of(MEMBER_GPR(RDX)),
          "cmp edi, 0x01\n"
          "  call the step\n"
          "mov edx, 0x05\n"
          "jz 0x1000000b\n"
          "ret\n",
          BYTES(0x83, 0xff, 0x01, 0xba, 5, 0, 0, 0, 0x74, 0x01, RET));
}

TEST(a_version_begins_with_the_step_of_the_load_whose_guard_failed)
{
    check(version_of(0) | VERSION_FIRST,
          "  call the count of failed guards\n"
          "  call the move for 8 bytes at [rdi]\n"
          "mov rcx, [rdi]\n"
          "  call what forgets dead registers\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x0f, RET));
}

TEST(bits_are_masked_in_line_where_flags_are_dead)
{
    check(version_of(MEMBER_GPR(RCX)),
          "  keep V bits 0x1 of {rcx}\n"
          "and ecx, 0x01\n"
          "xor edx, edx\n"
          "  forget {rcx}\n"
          "ret\n",
          BYTES(0x83, 0xe1, 0x01, 0x31, 0xd2, RET));
}

TEST(bits_are_masked_by_a_step_where_flags_are_live)
{
    check(version_of(MEMBER_GPR(RCX)),
          "  call the step\n"
          "and ecx, 0x01\n"
          "  call the step\n"
          "jz 0x10000006\n"
          "  forget {rcx, flags}\n"
          "ret\n",
          BYTES(0x83, 0xe1, 0x01, 0x74, 0x01, RET));
}

TEST(at_a_return_registers_that_hold_nothing_are_forgotten)
{
    check(version_of(MEMBER_GPR(RCX) | MEMBER_GPR(RAX)),
          "  forget {rcx}\n"
          "ret\n",
          BYTES(RET));
}

// ------------------------------------------------------------- guards that often fail

TEST(a_copy_has_one_step)
{
    check_often(
          "  copy up to 1000000a, unless all of this is defined: "
          "8 bytes at [rdi], 8 bytes at [rsi], 8 bytes at [rdi+0x8], 8 bytes at [rsi+0x8]\n"
          "mov rcx, [rdi]\n"
          "mov [rsi], rcx\n"
          "mov rcx, [rdi+0x08]\n"
          "mov [rsi+0x08], rcx\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x0f, 0x48, 0x89, 0x0e, 0x48, 0x8b, 0x4f, 0x08, 0x48, 0x89, 0x4e,
                0x08, RET));
}

TEST(what_is_loaded_for_the_caller_is_no_copy)
{
    check_often(
          "  unless it is defined, call the move for 8 bytes at [rdi]\n"
          "  steps go on here\n"
          "mov rax, [rdi]\n"
          "  if any of {rax} is undefined, call the move for 8 bytes at [rsi]\n"
          "  check the store of 8 bytes at [rsi]\n"
          "  steps go on here\n"
          "mov [rsi], rax\n"
          "  leave if any is undefined of {rax}\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x07, 0x48, 0x89, 0x06, RET));
}

TEST(a_copy_that_has_no_room_begins_another_block)
{
    enum { STORES = 21 };
    static u8 bytes[5 * STORES + 7];
    for (u32 i = 0; i < STORES; i++) // vmovups [rdi + 32 * i], ymm0
        memcpy(bytes + 5 * i, (const u8[]){0xc5, 0xfc, 0x11, 0x47, (u8)i}, 5);
    memcpy(bytes + 5 * STORES, (const u8[]){0x48, 0x8b, 0x0a, 0x48, 0x89, 0x0e, RET}, 7);
    set_up();
    if (!__builtin_cpu_supports("bmi2"))
        return;
    options = (Options){.undef_value_errors = true, .stress = STRESS_OFTEN};
    make_plan(bytes, sizeof(bytes), 0);
    CHECK_EQ(plan.count, STORES);
    CHECK_EQ(builder.insn_count, STORES);
    CHECK_EQ(builder.next_pc, CODE + 5 * STORES);
    make_plan(bytes + 10, sizeof(bytes) - 10, 0); // two stores less
    CHECK_EQ(plan.count, STORES - 2 + 3);
}

TEST(of_a_bit_field_the_bits_that_count_are_asked_for)
{
    check_often(
          "  guard bits 0x1010101 of 4 bytes at [rdi]\n"
          "test dword ptr [rdi], 0x1010101\n"
          "jz 0x10000009\n"
          "ret\n",
          BYTES(0xf7, 0x07, 0x01, 0x01, 0x01, 0x01, 0x74, 0x01, RET));
}

TEST(of_a_bit_field_with_a_byte_that_does_not_count_all_is_asked_for)
{
    check_often(
          "  unless it is defined, call the step for 4 bytes at [rdi]\n"
          "  steps go on here\n"
          "test dword ptr [rdi], 0x01\n"
          "  leave if any is undefined of {flags}\n"
          "jz 0x10000009\n"
          "ret\n",
          BYTES(0xf7, 0x07, 0x01, 0x00, 0x00, 0x00, 0x74, 0x01, RET));
}

TEST(what_is_loaded_is_asked_for_before_it_decides)
{
    check_often(
          "  unless it is defined, call the move for 8 bytes at [rdi]\n"
          "  steps go on here\n"
          "mov rdx, [rdi]\n"
          "  if any of {rdx} is undefined, call the step\n"
          "  steps go on here\n"
          "test rdx, rdx\n"
          "  leave if any is undefined of {rdx, flags}\n"
          "jz 0x10000009\n"
          "ret\n",
          BYTES(0x48, 0x8b, 0x17, 0x48, 0x85, 0xd2, 0x74, 0x01, RET));
}

// -------------------------------------------------------------------- constants

TEST(a_table_that_an_index_is_bounded_for_has_a_place)
{
    static const u8 bytes[] = {0x48, 0x8d, 0x15, 0xf9, 0x0f, 0, 0, // lea rdx, [CODE + 0x1000]
                               0x83, 0xe1, 0x07,                   // and ecx, 7
                               0x8b, 0x04, 0x8a,                   // mov eax, [rdx + rcx * 4]
                               RET};
    set_up();
    options = (Options){.undef_value_errors = true};
    make_plan(bytes, sizeof(bytes), 0);
    CHECK_EQ(plan.insns[2].has_span, 1);
    CHECK_EQ(plan.insns[2].spans[0].low, CODE + 0x1000);
    CHECK_EQ(plan.insns[2].spans[0].high, CODE + 0x1000 + 7 * 4);
    CHECK(plan.insns[2].places >> PLACE_CHECKS & 1); // nothing is mapped there
}

TEST(a_table_whose_index_is_not_bounded_has_none)
{
    static const u8 bytes[] = {0x48, 0x8d, 0x15, 0xf9, 0x0f, 0, 0, 0x8b, 0x04, 0x8a, RET};
    set_up();
    options = (Options){.undef_value_errors = true};
    make_plan(bytes, sizeof(bytes), 0);
    CHECK_EQ(plan.insns[1].has_span, 0);
}
