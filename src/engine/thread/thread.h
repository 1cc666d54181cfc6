#pragma once
#include "engine/run/run.h"
void thread_for_each(void (*fn)(ThreadCtx *, void *), void *arg);
void thread_init_main(ThreadCtx *ctx);
#define T(n) i64 n(ThreadCtx *ctx, const u64 a[6]);
T(sys_clone) T(sys_clone3) T(sys_fork) T(sys_vfork) T(sys_exit) T(sys_exit_group) T(sys_set_tid_address) T(sys_execve) T(sys_execveat)
