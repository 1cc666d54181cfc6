// SPDX-License-Identifier: MIT
//
// Allocators that an object brings along under the names of the C library's. Private to redirect/.
// Everything here needs the engine lock.
#ifndef MUNINN_ENGINE_REDIRECT_OWN_ALLOCATOR_H
#define MUNINN_ENGINE_REDIRECT_OWN_ALLOCATOR_H

#include "engine/redirect/elf_symbols.h"
#include "engine/redirect/redirect_internal.h"

// Whether the function at `free` does nothing but call an entry of a table of functions in memory.
// Then the allocator's names reach only some of the table's entries, and the program may call
// others.
bool own_allocator_has_table(GuestAddr free);

// The target of a function that does nothing but jump: all such functions of the object with one
// target are names of one function. 0: the function does more.
GuestAddr own_allocator_jump_target(GuestAddr function);

// To be called when the functions of an allocator in this object have been replaced. Keeps
// `object`.
void own_allocator_replaced(const Mapping *object);
// To be called when they are left alone: tells the user.
void own_allocator_left_alone(const Mapping *object);

#endif
