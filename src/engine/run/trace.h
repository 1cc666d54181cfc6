// SPDX-License-Identifier: MIT
#ifndef MUNINN_ENGINE_RUN_TRACE_H
#define MUNINN_ENGINE_RUN_TRACE_H
#endif
