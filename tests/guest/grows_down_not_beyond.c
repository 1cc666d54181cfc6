// SPDX-License-Identifier: MIT
// RUN: beyond
//
// The same program, with stores to where no stack grows.
#include "grows_down.c"
