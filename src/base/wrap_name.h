// SPDX-License-Identifier: MIT
//
// The names by which a program says that one of its functions wraps or replaces others, as
// valgrind.h's I_WRAP_SONAME_FNNAME_ZU and its relatives make them:
//
//     _vgw00000ZU_SONAME_FUNCTION
//
// `w` wraps and `r` replaces. The five digits are a tag, of which nothing depends here. SONAME is
// Z-encoded, so that it contains no underscore; with `ZZ` FUNCTION is Z-encoded, too. Both are
// patterns (* and ?).
#ifndef MUNINN_BASE_WRAP_NAME_H
#define MUNINN_BASE_WRAP_NAME_H

#include "base/types.h"

// Longer ones are taken for ordinary names.
#define WRAP_NAME_MAX 4096

typedef struct WrapName {
    bool wraps;           // it may call the original
    const char *soname;   // these two point into the caller's buffer
    const char *function;
} WrapName;

// Decodes `symbol`. False: it is an ordinary name, or badly encoded.
bool wrap_name_decode(const char *symbol, char buffer[WRAP_NAME_MAX], WrapName *ret_name);

// Whether it is worth a try, at the price of a look at three letters.
static inline bool wrap_name_begins(const char *symbol)
{
    return symbol[0] == '_' && symbol[1] == 'v' && symbol[2] == 'g';
}

#endif
