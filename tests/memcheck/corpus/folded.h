// SPDX-License-Identifier: MIT
//
// The operators of folded.cc: in a file of their own, so that a report's innermost frame in the
// topic is the call.
NOINLINE void *operator new(size_t n) { return malloc(n); }
NOINLINE void *operator new[](size_t n) { return malloc(n); }
NOINLINE void *operator new(size_t n, std::align_val_t) { return malloc(n); }
NOINLINE void operator delete(void *p) noexcept { free(p); }
NOINLINE void operator delete[](void *p) noexcept { free(p); }
NOINLINE void operator delete(void *p, size_t) noexcept { free(p); }
NOINLINE void operator delete[](void *p, size_t) noexcept { free(p); }
NOINLINE void operator delete(void *p, std::align_val_t) noexcept { free(p); }
