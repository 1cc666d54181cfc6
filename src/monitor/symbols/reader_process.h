// SPDX-License-Identifier: MIT
//
// The process in which the reader runs: started at the first question, given a
// budget of processor time per question, started again after it died. It ends by itself
// when the other end of its socket is closed.
#ifndef MUNINN_MONITOR_SYMBOLS_READER_PROCESS_H
#define MUNINN_MONITOR_SYMBOLS_READER_PROCESS_H

#include "monitor/symbols/reader.h"

typedef struct ReaderProcess {
    SymbolsConfig config;
    i32 pid;        // 0: none is running
    i32 fd;         // our end of the socket
    u32 generation; // how many were started: a new one knows no modules
    u32 cpu_limit_ms;
    u8 *reply;      // the bytes of the last reply
    size_t reply_capacity;
} ReaderProcess;

void reader_process_init(ReaderProcess *process, const SymbolsConfig *config);
void reader_process_free(ReaderProcess *process);
// In a process that only inherited it.
void reader_process_forget(ReaderProcess *process);

// Starts one if none is running. False: the kernel refused.
bool reader_process_ready(ReaderProcess *process);

// No answer is expected. False: the process is gone; it is then reaped.
bool reader_process_send(ReaderProcess *process, const ReaderRequest *request,
                         const void *payload);

// Sends and waits. NULL: the process died or was too slow, and is reaped. The reply lives
// until the next question; it is checked: every text in it ends inside it.
const ReaderReply *reader_process_ask(ReaderProcess *process, const ReaderRequest *request,
                                      const void *payload);

const ReaderItem *reader_reply_items(const ReaderReply *reply);
const char *reader_reply_text(const ReaderReply *reply, u32 text); // NULL for 0

#endif
