// SPDX-License-Identifier: MIT
//
// Loads whose guard fails again and again: copies of structures with holes in them, mostly. A clean
// block takes the steps of these out of line and goes on (docs/design/mixed-blocks.md).
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_OFTEN_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_OFTEN_H

#include "tools/memcheck/memcheck.h"

// At translation, under the engine lock.
bool often_fails(GuestAddr pc);
bool often_fails_still(GuestAddr pc); // although less is asked for; bitfields.h
// The argument of often_failed(), which counts how often it does. When that is enough, blocks with
// the instruction are made anew. 0: there is no room for more.
u64 often_place(GuestAddr pc);

// A guard of the clean block at `pc` asks for more than its own instruction loads. If it fails,
// that says nothing of the load: the guard shall ask for less from then on.
void often_note_wide(GuestAddr pc);
bool often_is_narrow(GuestAddr pc);

// What it calls.
void often_failed(ToolThread *thread, u64 place, GuestAddr unused);

#endif
