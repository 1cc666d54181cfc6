// SPDX-License-Identifier: MIT
//
// The engine's own words to the user: one line each, on the descriptor that
// --log-fd or --log-file names. Written with one raw write(), so lines of
// several threads and processes do not mix, and safe in any context.
#ifndef MUNINN_ENGINE_LOG_LOG_H
#define MUNINN_ENGINE_LOG_LOG_H

#include <stdarg.h>

#include "base/types.h"

// The descriptor becomes the engine's (see descriptors/): hidden from the client.
void log_init(int fd);
int log_fd(void);

// A line without prefix; the newline is added.
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_line_list(const char *format, va_list arguments);

// "muninn: …": what the user should know.
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same where the user cannot miss it: in the log, and on the standard error that the engine was
// started with, as long as the client has left it in its place.
void log_alarm(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same, and the end: the program was found and cannot be run (exit status 126).
_Noreturn void log_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
