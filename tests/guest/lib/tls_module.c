// SPDX-License-Identifier: MIT
// A dlopen'd module with thread-local storage of its own, reached by the general dynamic model.
__thread int module_tls = 77;
static __thread char module_buffer[5000];

int module_bump(int by)
{
    module_buffer[4999] += (char)by;
    return module_tls += by;
}

int module_buffer_end(void)
{
    return module_buffer[4999];
}
