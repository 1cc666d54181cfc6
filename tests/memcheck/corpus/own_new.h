// SPDX-License-Identifier: MIT
//
// The operators of own_new.cc: in a file of their own, so that a report's innermost frame in the
// topic is the call.
static int news, arrays;

NOINLINE void *operator new(size_t n)
{
    news++;
    return malloc(n);
}

NOINLINE void *operator new[](size_t n)
{
    arrays++;
    return malloc(n);
}
