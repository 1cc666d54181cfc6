#include "engine/thread/thread.h"
#include "engine/signal/signal.h"
#include "base/raw_syscall.h"
#include <sys/mman.h>
#include <unistd.h>
void thread_for_each(void (*fn)(ThreadCtx *, void *), void *arg){fn(&thread_ctx,arg);}
void thread_init_main(ThreadCtx *ctx){ctx->self=ctx;ctx->tid=getpid();ctx->xsave_size=gateway_xsave_size();ctx->xsave=mmap(0,16384,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);xstate_reset(ctx->xsave);signal_thread_init(ctx);}
#define P(n,nr) i64 n(ThreadCtx *ctx, const u64 a[6]){(void)ctx; return raw_syscall6(nr,a[0],a[1],a[2],a[3],a[4],a[5]);}
P(sys_clone,SYS_clone) P(sys_clone3,SYS_gettid) P(sys_fork,SYS_fork) P(sys_vfork,SYS_fork) P(sys_exit,SYS_exit) P(sys_exit_group,SYS_exit_group) P(sys_set_tid_address,SYS_set_tid_address) P(sys_execve,SYS_execve) P(sys_execveat,SYS_execveat)
