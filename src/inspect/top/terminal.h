// SPDX-License-Identifier: MIT
//
// The terminal: a screen of its own while top runs, keys as they are pressed. It is given back as
// it was found, whatever ends the program.
#ifndef MUNINN_INSPECT_TOP_TERMINAL_H
#define MUNINN_INSPECT_TOP_TERMINAL_H

#include "base/types.h"

typedef enum Key {
    KEY_NONE, // nothing in this time
    KEY_RESIZE,
    KEY_QUIT, // also a signal that ends us, and the end of the terminal
    KEY_UP,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_ENTER,
    KEY_OTHER = 0x100, // and the character
} Key;

// False: standard input and output are no terminal.
bool terminal_open(void);
void terminal_close(void);
void terminal_size(u32 *ret_width, u32 *ret_height);
void terminal_show(const char *frame, size_t size);
// Waits for a key.
int terminal_key(u64 timeout_ms);
// The signal that said KEY_QUIT; 0: a key did.
int terminal_signal(void);

#endif
