// SPDX-License-Identifier: MIT
//
// Errors in functions whose names are mangled: members, templates, operators,
// namespaces without a name, closures.
#include <cstdlib>
#include <vector>

#define NOINLINE __attribute__((noinline))

int sink;

NOINLINE static void touch()
{
    sink++;
    __asm__ volatile("");
}

namespace outer {
template <typename T> struct Box {
    T *value;
    NOINLINE void test(int) const
    {
        if (*value)
            touch();
    }
    NOINLINE bool operator<(int limit) const
    {
        if (*value < limit)
            touch();
        return true;
    }
};

template <typename T> NOINLINE void free_function(T *value)
{
    if (*value)
        touch();
}
} // namespace outer

namespace {
NOINLINE void hidden(int *value)
{
    if (*value)
        touch();
}
} // namespace

NOINLINE void leak()
{
    std::vector<int> *forgotten = new std::vector<int>(100);
    sink += (*forgotten)[0];
    __asm__ volatile("" : : "r"(forgotten));
}

int main()
{
    int *value = static_cast<int *>(malloc(sizeof(int)));
    outer::Box<int> box = { value };

    box.test(1);
    box < 5;
    outer::free_function(value);
    hidden(value);
    auto closure = [value](int) NOINLINE {
        if (*value)
            touch();
    };
    closure(1);
    leak();
    free(value);
    return 0;
}
