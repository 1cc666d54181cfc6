// SPDX-License-Identifier: MIT
//
// Requests of the monitor's, both ends of them: the text, who takes it, and
// the permission to interrupt a thread (W5).
#include <string.h>
#include <time.h>

#include "base/raw_syscall.h"
#include "wire/wire.h"

enum { CLOSE_TRIES = 10000, CLOSE_PAUSE_NS = 200000 }; // two seconds, on a busy machine more

u32 wire_request(WireShared *shared, const char *text, bool for_all)
{
    WireHeader *header = &shared->header;
    size_t length = strnlen(text, WIRE_REQUEST_BYTES - 1);
    // 0 is no sequence. The engine's copy of it may be anything, W3.
    u32 sequence = __atomic_load_n(&header->request_sequence, __ATOMIC_RELAXED) + 1;
    sequence += sequence == 0;

    memcpy(header->request, text, length);
    header->request[length] = '\0';
    header->request_for_all = for_all;
    __atomic_store_n(&header->request_sequence, sequence, __ATOMIC_RELEASE);
    return sequence;
}

u32 wire_request_take(WireShared *shared, u32 seen, char ret_text[WIRE_REQUEST_BYTES],
                      bool *ret_for_all)
{
    WireHeader *header = &shared->header;
    u32 newest = __atomic_load_n(&header->request_sequence, __ATOMIC_ACQUIRE);
    u32 taken = __atomic_load_n(&header->request_taken, __ATOMIC_ACQUIRE);

    *ret_for_all = header->request_for_all;
    if (newest == 0 || newest == seen || (!*ret_for_all && newest == taken))
        return 0;
    memcpy(ret_text, header->request, WIRE_REQUEST_BYTES);
    ret_text[WIRE_REQUEST_BYTES - 1] = '\0';
    // One that has given way to the next meanwhile is nobody's any more.
    if (__atomic_load_n(&header->request_sequence, __ATOMIC_ACQUIRE) != newest)
        return 0;
    if (!*ret_for_all &&
        !__atomic_compare_exchange_n(&header->request_taken, &taken, newest, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return 0;
    return newest;
}

bool wire_kick_begin(WireShared *shared)
{
    __atomic_store_n(&shared->header.kicking, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&shared->header.kicks_closed, __ATOMIC_SEQ_CST))
        return true;
    wire_kick_end(shared);
    return false;
}

void wire_kick_end(WireShared *shared)
{
    __atomic_store_n(&shared->header.kicking, 0, __ATOMIC_SEQ_CST);
}

// A monitor that dies between begin and end is not waited for long.
void wire_kicks_close(WireShared *shared)
{
    const struct timespec pause = {0, CLOSE_PAUSE_NS};

    __atomic_store_n(&shared->header.kicks_closed, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < CLOSE_TRIES; i++) {
        if (!__atomic_load_n(&shared->header.kicking, __ATOMIC_SEQ_CST))
            return;
        raw_syscall2(SYS_nanosleep, (u64)&pause, 0);
    }
}

void wire_kicks_open(WireShared *shared)
{
    __atomic_store_n(&shared->header.kicks_closed, 0, __ATOMIC_SEQ_CST);
}
