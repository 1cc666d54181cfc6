// SPDX-License-Identifier: MIT
//
// The crash report: what a bug of ours leaves behind.
#ifndef MUNINN_ENGINE_RUN_CRASH_H
#define MUNINN_ENGINE_RUN_CRASH_H

// Installs the report as panic hook and as hook of faults in engine code.
void crash_init(void);

#endif
