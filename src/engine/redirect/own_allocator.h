// SPDX-License-Identifier: MIT
//
// Allocators that an object brings along under the names of the C library's. Private to redirect/.
// Everything here needs the engine lock.
#ifndef MUNINN_ENGINE_REDIRECT_OWN_ALLOCATOR_H
#define MUNINN_ENGINE_REDIRECT_OWN_ALLOCATOR_H

#include "engine/redirect/elf_symbols.h"
#include "engine/redirect/redirect_internal.h"

// Whether the function at `free` does nothing but call what a table of functions in memory holds
// for it. Then the names of the allocator are some of its entries, and the program has others.
bool own_allocator_has_table(GuestAddr free);

// Where a function goes on that does nothing but jump: those of its object that go there at once
// call the same function. 0: it is none.
GuestAddr own_allocator_jump_target(GuestAddr function);

// The functions of an allocator in this object have been replaced. `object` is kept.
void own_allocator_replaced(const Mapping *object);
// ... are left alone; the user is told.
void own_allocator_left_alone(const Mapping *object);

#endif
