// SPDX-License-Identifier: MIT
//
// The functions of aliased.cc: in a file of their own, so that a report's innermost frame in the
// topic is the call.
extern "C" NOINLINE void give_all(void *p) noexcept
{
    corpus_sink[0] = (u64)(uintptr_t)p;
}
#define ALIAS_OF(function) __attribute__((alias(function)))
extern "C" NOINLINE void *get(size_t size) noexcept
{
    static u8 arena[1 << 16] __attribute__((aligned(16)));
    static size_t used;
    u8 *p = arena + used;
    used += (size + 15) & ~(size_t)15;
    return p;
}
extern "C" void *malloc(size_t) noexcept ALIAS_OF("get");
extern "C" void free(void *) noexcept ALIAS_OF("give_all");
void operator delete(void *) noexcept ALIAS_OF("give_all");
void operator delete[](void *) noexcept ALIAS_OF("give_all");
void operator delete(void *, std::align_val_t) noexcept ALIAS_OF("give_all");
