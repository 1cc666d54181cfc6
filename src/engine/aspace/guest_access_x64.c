// SPDX-License-Identifier: MIT
//
// Copies between engine and client memory that survive a bad client pointer.
// The copying instructions lie between known labels; a fault there resumes at
// the label that reports failure. The routines keep no frame, so changing rip
// is all the handler has to do. Only general registers are used.
#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

// 0, or 1 when a byte could not be copied.
u64 guest_copy_bytes(void *dst, const void *src, size_t len);
// The index of the NUL, `max` when there is none, -1 when a byte could not be read.
i64 guest_copy_string(char *dst, const char *src, size_t max);

extern const u8 guest_copy_bytes_begin[], guest_copy_bytes_end[], guest_copy_bytes_failed[];
// 0, or 1 when the byte could not be read.
u64 guest_probe_byte(const void *address);
extern const u8 guest_probe_begin[], guest_probe_failed[];
extern const u8 guest_copy_string_begin[], guest_copy_string_end[], guest_copy_string_failed[];

__asm__(".text\n"
        ".p2align 4\n"
        ".globl guest_copy_bytes\n"
        ".type guest_copy_bytes, @function\n"
        "guest_copy_bytes:\n"
        "    mov %rdx, %rcx\n"
        ".globl guest_copy_bytes_begin\n"
        "guest_copy_bytes_begin:\n"
        "    cmp $8, %rcx\n"
        "    jne 1f\n"
        "    mov (%rsi), %rax\n" // most accesses are one word
        "    mov %rax, (%rdi)\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        "1:  rep movsb\n"
        ".globl guest_copy_bytes_end\n"
        "guest_copy_bytes_end:\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        ".globl guest_copy_bytes_failed\n"
        "guest_copy_bytes_failed:\n"
        "    mov $1, %eax\n"
        "    ret\n"
        ".size guest_copy_bytes, . - guest_copy_bytes\n"

        ".p2align 4\n"
        ".globl guest_probe_byte\n"
        ".type guest_probe_byte, @function\n"
        "guest_probe_byte:\n"
        "    xor %eax, %eax\n"
        ".globl guest_probe_begin\n"
        "guest_probe_begin:\n"
        "    testb %al, (%rdi)\n"
        "    ret\n"
        ".globl guest_probe_failed\n"
        "guest_probe_failed:\n"
        "    mov $1, %eax\n"
        "    ret\n"
        ".size guest_probe_byte, . - guest_probe_byte\n"

        ".p2align 4\n"
        ".globl guest_copy_string\n"
        ".type guest_copy_string, @function\n"
        "guest_copy_string:\n"
        "    xor %eax, %eax\n"
        ".globl guest_copy_string_begin\n"
        "guest_copy_string_begin:\n"
        "1:  cmp %rdx, %rax\n"
        "    jae 2f\n"
        "    movzbl (%rsi,%rax), %ecx\n"
        "    mov %cl, (%rdi,%rax)\n"
        "    test %cl, %cl\n"
        "    je 2f\n"
        "    inc %rax\n"
        "    jmp 1b\n"
        ".globl guest_copy_string_end\n"
        "guest_copy_string_end:\n"
        "2:  ret\n"
        ".globl guest_copy_string_failed\n"
        "guest_copy_string_failed:\n"
        "    mov $-1, %rax\n"
        "    ret\n"
        ".size guest_copy_string, . - guest_copy_string\n");

bool guest_read(GuestAddr addr, void *dst, size_t len)
{
    return range_is_client(addr, len) && guest_copy_bytes(dst, (const void *)addr, len) == 0;
}

bool engine_can_read(const void *address)
{
    return guest_probe_byte(address) == 0;
}

// How often another thread may translate from the page again before the write is through.
#define WRITE_TRIES 16

static bool lift_guards(GuestAddr addr, size_t len)
{
    lock_acquire(&engine_lock);
    bool lifted = aspace_unguard_range(addr, len);
    lock_release(&engine_lock);
    return lifted;
}

bool guest_write(GuestAddr addr, const void *src, size_t len)
{
    if (!range_is_client(addr, len))
        return false;
    // After a failure once more in any case: another thread may have lifted the guards.
    bool again = true;
    for (u32 i = 0; i < WRITE_TRIES && again; i++) {
        if (guest_copy_bytes((void *)addr, src, len) == 0)
            return true;
        again = lift_guards(addr, len) || i == 0;
    }
    return false;
}

i64 guest_read_string(GuestAddr addr, char *dst, size_t max)
{
    u64 reach = range_client_bytes(addr, max);
    if (!reach)
        return -1;

    i64 len = guest_copy_string(dst, (const char *)addr, reach);
    return len == (i64)reach ? -1 : len;
}

// What GUEST_FIXUP() has left, each word relative to its own place. The section has a row in
// any case, so that its ends exist.
typedef struct GuestFixup {
    i32 at, to;
} GuestFixup;
extern const GuestFixup __start_guest_fixups[], __stop_guest_fixups[];
__asm__(GUEST_FIXUP("guest_copy_bytes_begin", "guest_copy_bytes_failed"));

static u64 find_fixup(u64 host_pc)
{
    for (const GuestFixup *f = __start_guest_fixups; f < __stop_guest_fixups; f++) {
        if ((u64)&f->at + (u64)(i64)f->at == host_pc)
            return (u64)&f->to + (u64)(i64)f->to;
    }
    return 0;
}

u64 guest_access_fixup(u64 host_pc)
{
    if (host_pc >= (u64)guest_copy_bytes_begin && host_pc < (u64)guest_copy_bytes_end)
        return (u64)guest_copy_bytes_failed;
    if (host_pc == (u64)guest_probe_begin)
        return (u64)guest_probe_failed;
    if (host_pc >= (u64)guest_copy_string_begin && host_pc < (u64)guest_copy_string_end)
        return (u64)guest_copy_string_failed;
    return find_fixup(host_pc);
}
