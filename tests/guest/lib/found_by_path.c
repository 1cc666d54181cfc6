// SPDX-License-Identifier: MIT
// Found through LD_LIBRARY_PATH only.
int found_by_path(void)
{
    return 42;
}
