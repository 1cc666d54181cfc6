// SPDX-License-Identifier: MIT
//
// The process in which the reader runs: started at the first question, given a
// budget of processor time per question, started again after it died. It ends by itself
// when the other end of its socket is closed, and is ended when nobody has asked for long: it
// has tens of megabytes then, and all its answers are kept.
#ifndef MUNINN_MONITOR_SYMBOLS_READER_PROCESS_H
#define MUNINN_MONITOR_SYMBOLS_READER_PROCESS_H

#include "monitor/symbols/reader.h"

enum { READER_AHEAD_MAX = SYMBOLS_AHEAD_MAX };

typedef struct ReaderProcess {
    SymbolsConfig config;
    i32 pid;        // 0: none is running
    i32 fd;         // our end of the socket
    u32 generation; // how many were started: a new one knows no modules
    u32 cpu_limit_ms;
    u32 rest_after_ms; // without a question
    u64 asked_ms;      // when the last one was sent, by the monotonic clock
    u8 *reply;      // the bytes of the last reply, and of those that came with it
    size_t reply_capacity;
    size_t reply_bytes, reply_all; // of the last one; of all
    // Asked ahead: a ring of those whose replies are still to be taken.
    ReaderRequest ahead[READER_AHEAD_MAX];
    u32 ahead_first, ahead_count;
    u32 unsent; // of these: they go in one piece
    bool was_ahead; // some were, when the process died: it need not have died of the question
} ReaderProcess;

void reader_process_init(ReaderProcess *process, const SymbolsConfig *config);
void reader_process_free(ReaderProcess *process);
// In a process that only inherited it.
void reader_process_forget(ReaderProcess *process);

// Ends the process if it has had nothing to do for rest_after_ms and much longer than it has
// worked: what it has read would have to be read again for the next question.
void reader_process_rest(ReaderProcess *process);

// Starts one if none is running. False: the kernel refused.
bool reader_process_ready(ReaderProcess *process);

// No answer is expected. False: the process is gone; it is then reaped.
bool reader_process_send(ReaderProcess *process, const ReaderRequest *request,
                         const void *payload);

// Sends and waits. NULL: the process died or was too slow, and is reaped. The reply lives
// until the next question; it is checked: every text in it ends inside it.
const ReaderReply *reader_process_ask(ReaderProcess *process, const ReaderRequest *request,
                                      const void *payload);

// Sends a question that reader_process_ask() will ask, in the order of these calls: its answer
// is then on its way already. False: there are too many, or the process is gone.
bool reader_process_ask_ahead(ReaderProcess *process, const ReaderRequest *request);
// They are sent with the next question, or now.
void reader_process_send_ahead(ReaderProcess *process);
// Whether (a part of) an answer to one of them has come.
bool reader_process_has_answer(const ReaderProcess *process);

const ReaderItem *reader_reply_items(const ReaderReply *reply);
const char *reader_reply_text(const ReaderReply *reply, u32 text); // NULL for 0

#endif
