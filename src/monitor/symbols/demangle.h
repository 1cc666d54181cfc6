// SPDX-License-Identifier: MIT
//
// Names as people wrote them: demangled, without what only the compiler added.
#ifndef MUNINN_MONITOR_SYMBOLS_DEMANGLE_H
#define MUNINN_MONITOR_SYMBOLS_DEMANGLE_H

// C++, Rust (legacy and v0) and D. Hashes and the suffixes of clones are trimmed; `@plt` and
// versions stay. Allocated; NULL only when memory is short.
char *demangle_name(const char *mangled);

#endif
