// SPDX-License-Identifier: MIT
//
// The names of wrappers and replacements.
#include <string.h>

#include "unit.h"
#include "base/wrap_name.h"

static char buffer[WRAP_NAME_MAX];
static WrapName name;

static bool is(bool wraps, const char *soname, const char *function)
{
    return name.wraps == wraps && strcmp(name.soname, soname) == 0 &&
           strcmp(name.function, function) == 0;
}

TEST(a_wrapper_and_a_replacement_say_what_they_are_for)
{
    CHECK(wrap_name_decode("_vgw00000ZU_NONE_foo", buffer, &name) && is(true, "NONE", "foo"));
    CHECK(wrap_name_decode("_vgr12345ZU_NONE_a_b", buffer, &name) && is(false, "NONE", "a_b"));
}

TEST(what_is_encoded_is_decoded)
{
    CHECK(wrap_name_decode("_vgw00000ZZ_libpthreadZdsoZd0_pthreadZucreateZAZa", buffer, &name));
    CHECK(is(true, "libpthread.so.0", "pthread_create@*"));
    CHECK(wrap_name_decode("_vgw00000ZZ_aZpZcZuZhZsZZ_ZLZRZDZPZS", buffer, &name));
    CHECK(is(true, "a+:_- Z", "()$%/"));
}

TEST(the_function_of_ZU_stands_as_it_is)
{
    CHECK(wrap_name_decode("_vgw00000ZU_libxZdsoZa__ZN3fooEv", buffer, &name));
    CHECK(is(true, "libx.so*", "_ZN3fooEv"));
    CHECK(wrap_name_decode("_vgw00000ZU_NONE__vgw00000ZU_NONE_foo", buffer, &name));
    CHECK(is(true, "NONE", "_vgw00000ZU_NONE_foo"));
}

TEST(other_names_are_left_alone)
{
    static const char *const others[] = {
        "", "_", "_v", "_vg", "_vgw", "_vgx00000ZU_NONE_foo", "_vgw0000ZU_NONE_foo",
        "_vgw000000ZU_NONE_foo", "_vgw00000ZX_NONE_foo", "_vgw00000ZU_NONE", "_vgw00000ZU_NONE_",
        "_vgw00000ZZ_NONE_fooZ", "_vgw00000ZZ_NONE_fooZq", "_vgw00000ZU_aZmb_foo", "malloc",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CHECK(!wrap_name_decode(others[i], buffer, &name));
    static char large[WRAP_NAME_MAX + 100];
    memset(large, 'a', sizeof(large) - 1);
    memcpy(large, "_vgw00000ZU_NONE_", 17);
    CHECK(!wrap_name_decode(large, buffer, &name));
}
