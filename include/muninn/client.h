/* SPDX-License-Identifier: MIT
 *
 * Client requests: what a program can ask of Muninn when it runs under it.
 *
 * Each is a few instructions that do nothing on a real CPU, so the macros may stay
 * in production code: they cost some nanoseconds there and give their default, which is
 * 0 unless stated. They speak the protocol of valgrind.h, so that they work under
 * Valgrind as well, and programs that include valgrind.h work under Muninn.
 *
 * For C and C++, gcc and clang. On anything but x86-64 Linux, and with MUNINN_NO_REQUESTS
 * defined, every request is its default. No library is needed.
 */
#ifndef MUNINN_CLIENT_H
#define MUNINN_CLIENT_H

#include <stdarg.h>

/* major << 16 | minor << 8 | patch of the interface described here. */
#define MUNINN_CLIENT_VERSION 0x000100ul

/* ------------------------------------------------------------ the mechanism */

#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__) && !defined(MUNINN_NO_REQUESTS)

static inline __attribute__((unused, always_inline)) unsigned long
muninn_request(unsigned long otherwise, unsigned long number, unsigned long arg1,
               unsigned long arg2, unsigned long arg3, unsigned long arg4, unsigned long arg5)
{
    volatile unsigned long request[6];
    unsigned long result = otherwise;
    request[0] = number;
    request[1] = arg1;
    request[2] = arg2;
    request[3] = arg3;
    request[4] = arg4;
    request[5] = arg5;
    /* The rotations add up to two full turns. */
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(&request[0])
                     : "cc", "memory");
    return result;
}

#else

static inline __attribute__((unused)) unsigned long
muninn_request(unsigned long otherwise, unsigned long number, unsigned long arg1,
               unsigned long arg2, unsigned long arg3, unsigned long arg4, unsigned long arg5)
{
    (void)number, (void)arg1, (void)arg2, (void)arg3, (void)arg4, (void)arg5;
    return otherwise;
}

#endif

/* Arguments may be pointers or integers. */
#define MUNINN_REQUEST(otherwise, number, a1, a2, a3, a4, a5) \
    muninn_request((unsigned long)(otherwise), (unsigned long)(number), (unsigned long)(a1), \
                   (unsigned long)(a2), (unsigned long)(a3), (unsigned long)(a4), \
                   (unsigned long)(a5))

/* Where the numbers of a tool's own requests begin. */
#define MUNINN_TOOL_BASE(a, b) \
    ((unsigned long)((a) & 0xff) << 24 | (unsigned long)((b) & 0xff) << 16)

enum muninn_requests {
    MUNINN_REQ_RUNNING = 0x1001,
    MUNINN_REQ_DISCARD_TRANSLATIONS = 0x1002,
    MUNINN_REQ_CLIENT_CALL0 = 0x1101,
    MUNINN_REQ_CLIENT_CALL1 = 0x1102,
    MUNINN_REQ_CLIENT_CALL2 = 0x1103,
    MUNINN_REQ_CLIENT_CALL3 = 0x1104,
    MUNINN_REQ_COUNT_ERRORS = 0x1201,
    MUNINN_REQ_MONITOR_COMMAND = 0x1202,
    MUNINN_REQ_CHANGE_OPTION = 0x1203,
    MUNINN_REQ_MALLOCLIKE_BLOCK = 0x1301,
    MUNINN_REQ_FREELIKE_BLOCK = 0x1302,
    MUNINN_REQ_CREATE_MEMPOOL = 0x1303,
    MUNINN_REQ_DESTROY_MEMPOOL = 0x1304,
    MUNINN_REQ_MEMPOOL_ALLOC = 0x1305,
    MUNINN_REQ_MEMPOOL_FREE = 0x1306,
    MUNINN_REQ_MEMPOOL_TRIM = 0x1307,
    MUNINN_REQ_MOVE_MEMPOOL = 0x1308,
    MUNINN_REQ_MEMPOOL_CHANGE = 0x1309,
    MUNINN_REQ_MEMPOOL_EXISTS = 0x130a,
    MUNINN_REQ_RESIZEINPLACE_BLOCK = 0x130b,
    MUNINN_REQ_PRINTF = 0x1403,
    MUNINN_REQ_PRINTF_BACKTRACE = 0x1404,
    MUNINN_REQ_STACK_REGISTER = 0x1501,
    MUNINN_REQ_STACK_DEREGISTER = 0x1502,
    MUNINN_REQ_STACK_CHANGE = 0x1503,
    MUNINN_REQ_MAP_IP_TO_SRCLOC = 0x1701,
    MUNINN_REQ_CHANGE_ERROR_DISABLEMENT = 0x1801,

    MUNINN_REQ_VERSION = 0x4d550000, /* 'M', 'U': known to Muninn only */
    MUNINN_REQ_TOOL_NAME = 0x4d550001,
    MUNINN_REQ_GET_REGISTER_VBITS = 0x4d550010,

    MUNINN_REQ_MAKE_MEM_NOACCESS = 0x4d430000, /* 'M', 'C': the memory checker */
    MUNINN_REQ_MAKE_MEM_UNDEFINED,
    MUNINN_REQ_MAKE_MEM_DEFINED,
    MUNINN_REQ_DISCARD,
    MUNINN_REQ_CHECK_MEM_IS_ADDRESSABLE,
    MUNINN_REQ_CHECK_MEM_IS_DEFINED,
    MUNINN_REQ_DO_LEAK_CHECK,
    MUNINN_REQ_COUNT_LEAKS,
    MUNINN_REQ_GET_VBITS,
    MUNINN_REQ_SET_VBITS,
    MUNINN_REQ_CREATE_BLOCK,
    MUNINN_REQ_MAKE_MEM_DEFINED_IF_ADDRESSABLE,
    MUNINN_REQ_COUNT_LEAK_BLOCKS,
    MUNINN_REQ_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE,
    MUNINN_REQ_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE
};

/* ----------------------------------------------------------- where are we? */

/* Not 0 under Muninn, or under Valgrind: how many of them run one in the other. */
#define MUNINN_RUNNING ((unsigned)MUNINN_REQUEST(0, MUNINN_REQ_RUNNING, 0, 0, 0, 0, 0))

/* MUNINN_CLIENT_VERSION of the Muninn we run under; 0 elsewhere, Valgrind included. */
#define MUNINN_VERSION_RUNNING MUNINN_REQUEST(0, MUNINN_REQ_VERSION, 0, 0, 0, 0, 0)

/* The name of the tool, cut to `size` bytes with the final 0. Returns its length, 0 when
 * there is none. */
#define MUNINN_TOOL_NAME(buffer, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_TOOL_NAME, buffer, size, 0, 0, 0)

/* -------------------------------------------------------------------- text */

/* printf to the log, with **PID** before each line. A line appears when it is complete.
 * Returns the number of characters, 0 when nobody listens. */
static inline __attribute__((unused, format(printf, 1, 2))) int
MUNINN_PRINTF(const char *format, ...)
{
    unsigned long count;
    va_list arguments;
    va_start(arguments, format);
    count = MUNINN_REQUEST(0, MUNINN_REQ_PRINTF, format, &arguments, 0, 0, 0);
    va_end(arguments);
    return (int)count;
}

/* The same, and the stack that leads here. */
static inline __attribute__((unused, format(printf, 1, 2))) int
MUNINN_PRINTF_BACKTRACE(const char *format, ...)
{
    unsigned long count;
    va_list arguments;
    va_start(arguments, format);
    count = MUNINN_REQUEST(0, MUNINN_REQ_PRINTF_BACKTRACE, format, &arguments, 0, 0, 0);
    va_end(arguments);
    return (int)count;
}

/* ------------------------------------------------------------------ errors */

/* Errors found so far. */
#define MUNINN_COUNT_ERRORS ((unsigned)MUNINN_REQUEST(0, MUNINN_REQ_COUNT_ERRORS, 0, 0, 0, 0, 0))

/* Between these two the calling thread has no errors reported. They nest. */
#define MUNINN_DISABLE_ERROR_REPORTING \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_CHANGE_ERROR_DISABLEMENT, 1, 0, 0, 0, 0))
#define MUNINN_ENABLE_ERROR_REPORTING \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_CHANGE_ERROR_DISABLEMENT, -1, 0, 0, 0, 0))

/* A command as `muninn ctl` would send it. 0 when it is known, 1 when it is not. */
#define MUNINN_MONITOR_COMMAND(command) \
    ((int)MUNINN_REQUEST(0, MUNINN_REQ_MONITOR_COMMAND, command, 0, 0, 0, 0))
#define MUNINN_CHANGE_OPTION(option) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_CHANGE_OPTION, option, 0, 0, 0, 0))

/* -------------------------------------------------------- code and threads */

/* Code in [start, start + size) was changed by means that nobody can see. Muninn sees
 * stores, system calls and mappings by itself. */
#define MUNINN_DISCARD_TRANSLATIONS(start, size) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DISCARD_TRANSLATIONS, start, size, 0, 0, 0))

/* Calls function(thread id, arguments ...) and gives its result: integers only. */
#define MUNINN_NON_SIMD_CALL0(function) \
    MUNINN_REQUEST(0, MUNINN_REQ_CLIENT_CALL0, function, 0, 0, 0, 0)
#define MUNINN_NON_SIMD_CALL1(function, a1) \
    MUNINN_REQUEST(0, MUNINN_REQ_CLIENT_CALL1, function, a1, 0, 0, 0)
#define MUNINN_NON_SIMD_CALL2(function, a1, a2) \
    MUNINN_REQUEST(0, MUNINN_REQ_CLIENT_CALL2, function, a1, a2, 0, 0)
#define MUNINN_NON_SIMD_CALL3(function, a1, a2, a3) \
    MUNINN_REQUEST(0, MUNINN_REQ_CLIENT_CALL3, function, a1, a2, a3, 0)

/* [start, end] is a stack; returns an id for the other two. */
#define MUNINN_STACK_REGISTER(start, end) \
    MUNINN_REQUEST(0, MUNINN_REQ_STACK_REGISTER, start, end, 0, 0, 0)
#define MUNINN_STACK_DEREGISTER(id) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_STACK_DEREGISTER, id, 0, 0, 0, 0))
#define MUNINN_STACK_CHANGE(id, start, end) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_STACK_CHANGE, id, start, end, 0, 0))

/* Writes "file:line" of a code address into 64 bytes, or an empty string. */
#define MUNINN_MAP_IP_TO_SRCLOC(address, buffer64) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MAP_IP_TO_SRCLOC, address, buffer64, 0, 0, 0))

/* -------------------------------------------------------- allocators and pools */

/* A block of an allocator that is not malloc, with `redzone` bytes of nobody's on either side. */
#define MUNINN_MALLOCLIKE_BLOCK(address, size, redzone, is_zeroed) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MALLOCLIKE_BLOCK, address, size, redzone, is_zeroed, 0))
#define MUNINN_RESIZEINPLACE_BLOCK(address, old_size, new_size, redzone) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_RESIZEINPLACE_BLOCK, address, old_size, new_size, \
                          redzone, 0))
#define MUNINN_FREELIKE_BLOCK(address, redzone) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_FREELIKE_BLOCK, address, redzone, 0, 0, 0))

#define MUNINN_MEMPOOL_AUTO_FREE 1 /* freeing a block frees the blocks within it */
#define MUNINN_MEMPOOL_METAPOOL 2  /* its blocks hold blocks of MUNINN_MALLOCLIKE_BLOCK */
#define MUNINN_CREATE_MEMPOOL(pool, redzone, is_zeroed) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_CREATE_MEMPOOL, pool, redzone, is_zeroed, 0, 0))
#define MUNINN_CREATE_MEMPOOL_EXT(pool, redzone, is_zeroed, flags) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_CREATE_MEMPOOL, pool, redzone, is_zeroed, flags, 0))
#define MUNINN_DESTROY_MEMPOOL(pool) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DESTROY_MEMPOOL, pool, 0, 0, 0, 0))
#define MUNINN_MEMPOOL_ALLOC(pool, address, size) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MEMPOOL_ALLOC, pool, address, size, 0, 0))
#define MUNINN_MEMPOOL_FREE(pool, address) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MEMPOOL_FREE, pool, address, 0, 0, 0))
#define MUNINN_MEMPOOL_TRIM(pool, address, size) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MEMPOOL_TRIM, pool, address, size, 0, 0))
#define MUNINN_MOVE_MEMPOOL(from, to) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MOVE_MEMPOOL, from, to, 0, 0, 0))
#define MUNINN_MEMPOOL_CHANGE(pool, from, to, size) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_MEMPOOL_CHANGE, pool, from, to, size, 0))
#define MUNINN_MEMPOOL_EXISTS(pool) \
    ((unsigned)MUNINN_REQUEST(0, MUNINN_REQ_MEMPOOL_EXISTS, pool, 0, 0, 0, 0))

/* -------------------------------------------------------- the memory checker */

#define MUNINN_MAKE_MEM_NOACCESS(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_MAKE_MEM_NOACCESS, address, size, 0, 0, 0)
#define MUNINN_MAKE_MEM_UNDEFINED(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_MAKE_MEM_UNDEFINED, address, size, 0, 0, 0)
#define MUNINN_MAKE_MEM_DEFINED(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_MAKE_MEM_DEFINED, address, size, 0, 0, 0)
#define MUNINN_MAKE_MEM_DEFINED_IF_ADDRESSABLE(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_MAKE_MEM_DEFINED_IF_ADDRESSABLE, address, size, 0, 0, 0)

/* The first byte that is not so, or 0; and an error report. */
#define MUNINN_CHECK_MEM_IS_ADDRESSABLE(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_CHECK_MEM_IS_ADDRESSABLE, address, size, 0, 0, 0)
#define MUNINN_CHECK_MEM_IS_DEFINED(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_CHECK_MEM_IS_DEFINED, address, size, 0, 0, 0)
#define MUNINN_CHECK_VALUE_IS_DEFINED(lvalue) \
    MUNINN_CHECK_MEM_IS_DEFINED(&(lvalue), sizeof(lvalue))

/* Names a region in reports; returns a handle for MUNINN_DISCARD. */
#define MUNINN_CREATE_BLOCK(address, size, description) \
    MUNINN_REQUEST(0, MUNINN_REQ_CREATE_BLOCK, address, size, description, 0, 0)
#define MUNINN_DISCARD(handle) MUNINN_REQUEST(0, MUNINN_REQ_DISCARD, 0, handle, 0, 0, 0)

/* Leaks now; since the last check; only those that are new. */
#define MUNINN_DO_LEAK_CHECK \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DO_LEAK_CHECK, 0, 0, 0, 0, 0))
#define MUNINN_DO_ADDED_LEAK_CHECK \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DO_LEAK_CHECK, 0, 1, 0, 0, 0))
#define MUNINN_DO_CHANGED_LEAK_CHECK \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DO_LEAK_CHECK, 0, 2, 0, 0, 0))
#define MUNINN_DO_NEW_LEAK_CHECK \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DO_LEAK_CHECK, 0, 3, 0, 0, 0))
#define MUNINN_DO_QUICK_LEAK_CHECK \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_DO_LEAK_CHECK, 1, 0, 0, 0, 0))

/* Each argument is the address of an unsigned long that the caller has set to 0. */
#define MUNINN_COUNT_LEAKS(leaked, dubious, reachable, suppressed) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_COUNT_LEAKS, leaked, dubious, reachable, suppressed, 0))
#define MUNINN_COUNT_LEAK_BLOCKS(leaked, dubious, reachable, suppressed) \
    ((void)MUNINN_REQUEST(0, MUNINN_REQ_COUNT_LEAK_BLOCKS, leaked, dubious, reachable, \
                          suppressed, 0))

/* One bit per bit of memory, 1: undefined. Result: 1 done, 3 no access, 0 elsewhere. */
#define MUNINN_GET_VBITS(address, bits, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_GET_VBITS, address, bits, size, 0, 0)
#define MUNINN_SET_VBITS(address, bits, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_SET_VBITS, address, bits, size, 0, 0)

/* The V bits of a register, as they are where the request stands: for tests of the checker,
 * and of code that must not depend on a secret. 0 to 15: general registers in the order of
 * the hardware (rax and rdx are the request's own); 16 eflags, 17 mxcsr, 18 the words of the
 * x87 as one; 24 to 31: k0 to k7; 32 to 63: zmm0 to zmm31; 64 to 71: st(0) to st(7). Returns the
 * number of bytes: 8, 64 or 10; 0 if there is no such register, `size` is less, or nobody
 * knows. Muninn only. */
#define MUNINN_GET_REGISTER_VBITS(number, bits, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_GET_REGISTER_VBITS, number, bits, size, 0, 0)

#define MUNINN_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE, address, size, 0, 0, 0)
#define MUNINN_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE(address, size) \
    MUNINN_REQUEST(0, MUNINN_REQ_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE, address, size, 0, 0, 0)

#endif
