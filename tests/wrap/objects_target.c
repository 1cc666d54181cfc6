// SPDX-License-Identifier: MIT
//
// What objects.c and preloaded.c call.
int target(int a)
{
    return a;
}
