// SPDX-License-Identifier: MIT
//
// Between the files of request/.
#ifndef MUNINN_ENGINE_REQUEST_INTERNAL_H
#define MUNINN_ENGINE_REQUEST_INTERNAL_H

#include "engine/request/request.h"

// --- format.c
typedef bool RequestRead(GuestAddr address, void *dst, size_t len);
typedef void RequestPut(char c, void *arg);

// Formats as printf does, with the client's format and va_list; calls `put` for
// each character. Ends where the format cannot be read or at
// REQUEST_TEXT_MAX characters. Returns how many there were.
#define REQUEST_TEXT_MAX (64 * 1024)
size_t request_format(GuestAddr format, GuestAddr va_list_at, RequestRead *read, RequestPut *put,
                      void *arg);

// --- text.c
// Prints, with the thread's context if `backtrace`. Returns the number of characters.
size_t text_print(ThreadCtx *ctx, GuestAddr format, GuestAddr va_list_at, bool backtrace);
void text_fork_prepare(void);
void text_fork_done(bool in_child);

// --- stacks.c
u64 stacks_register(GuestAddr a, GuestAddr b); // returns its id
void stacks_deregister(u64 id);
void stacks_change(u64 id, GuestAddr a, GuestAddr b);
void stacks_fork_prepare(void);
void stacks_fork_done(void);

#endif
