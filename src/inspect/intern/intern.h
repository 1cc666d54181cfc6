// SPDX-License-Identifier: MIT
//
// Strings as numbers: equal strings have equal ids, from 0 on in order of their first use.
#ifndef MUNINN_INSPECT_INTERN_INTERN_H
#define MUNINN_INSPECT_INTERN_INTERN_H

#include "base/types.h"

typedef struct Interner Interner;

Interner *interner_new(void);
void interner_free(Interner *interner);
u32 intern(Interner *interner, const char *text);
const char *interned(const Interner *interner, u32 id); // until it is freed
u32 interned_count(const Interner *interner);

#endif
