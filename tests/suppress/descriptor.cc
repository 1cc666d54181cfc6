// SPDX-License-Identifier: MIT
//
// Leaves a descriptor open, in a function whose name is mangled.
#include <fcntl.h>

namespace app {
template <typename T> __attribute__((noinline)) int open_it(T flags)
{
    return open("/dev/null", flags);
}
} // namespace app

int main()
{
    return app::open_it(O_RDONLY) < 0;
}
