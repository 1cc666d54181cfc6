// SPDX-License-Identifier: MIT
//
// A shared object that is no tool.
int nothing(void);
int nothing(void)
{
    return 0;
}
