// SPDX-License-Identifier: MIT
//
// A library that does nothing, for LD_PRELOAD beside counter.so.
int nothing_at_all;
