// SPDX-License-Identifier: MIT
//
// The engine's start: from an ordinary process to a client on the synthetic CPU.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/descriptors/descriptors.h"
#include "engine/loader/loader.h"
#include "engine/procview/procview.h"
#include "engine/run/log.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread.h"
#include "engine/translate/translate.h"
#include "launch/launch.h"
#include "launch/options.h"

static Options options;

int main(int argc, char **argv, char **envp)
{
    options_init(&options);
    int program = options_parse(argc, argv, &options);
    if (program < 0 || program >= argc || !options.exe) {
        static const char text[] = "muninn-engine: started by `muninn`, not by hand\n";
        (void)!write(2, text, sizeof(text) - 1);
        return 1;
    }
    environment_restore(envp);
    if (!descriptors_open_log(&options, log_init))
        return 1;

    gateway_init();
    aspace_init();
    cache_init(options.stress & STRESS_TINY_CACHE ? 512 * KiB : options.cache_size_bytes,
               !(options.stress & STRESS_NO_LINK));
    translate_init(options.stress & STRESS_TINY_BLOCKS ? 2 : 0);
    signal_init();

    ThreadCtx *ctx = &thread_ctx;
    thread_init_main(ctx);
    signal_adopt_process(ctx);
    if (!loader_start(options.exe, argc - program, argv + program, envp, &ctx->pc, &ctx->gpr[RSP]))
        return 126;
    procview_init(ctx->gpr[RSP]);
    ctx->flags = 0x202;
    run_thread(ctx);
}
