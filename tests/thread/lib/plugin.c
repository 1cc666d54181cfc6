// SPDX-License-Identifier: MIT
// Loaded and unloaded by several threads at once.
static __thread int calls;

int plugin_call(int x)
{
    return x * 3 + (++calls > 0);
}
