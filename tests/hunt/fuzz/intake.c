// SPDX-License-Identifier: MIT
//
// The monitor's intake. The client can write into the wire, so records may hold anything. The first
// byte tells how the rest is given: as records, each with a type, a length and words, or as
// the memory of a ring, with the positions that its producer has published.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fuzz.h"
#include "monitor/intake/run.h"

enum { RECORDS_MAX = 200 };

static pid_t victim; // whoever the records make the monitor signal, it is this one
static Options options;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    options_init(&options);
    options.exe = options.execfn = "/bin/prog";
    options.tool = "memcheck";
    options.log_file = "/dev/null";
    options.json_file = "/dev/null";
    options.sarif_file = "/dev/null";
    options.profile_file = "/dev/null";
    options.gen_suppressions = GEN_SUPPRESSIONS_ALL;
    options.show_error_list = true;
    victim = fork();
    if (victim == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return 0;
}

static void open_run(Run *run, const char *tool)
{
    static const char *const argv[] = {"prog", NULL};
    static IntakeCommand command = {.options = &options, .argc = 1, .argv = argv};
    int fd = wire_create();

    *run = (Run){.command = &command, .options = &options, .life = -1, .attach = -1, .pidfd = -1};
    run->shared = wire_map(fd);
    close(fd);
    FUZZ_CHECK(run->shared);
    run->shared->header.pid = victim;
    run->consumer = wire_consumer_new(run->shared);
    run->vocabulary = vocabulary_new();
    FUZZ_CHECK(run->vocabulary);
    run->info = (RunInfo){.vocabulary = run->vocabulary, .pid = victim, .tool = tool,
                          .tool_title = "Memcheck",
                          .program = "/bin/prog", .argc = 1, .argv = argv, .muninn_exe = "muninn"};
    run->symbols = symbols_new(&(SymbolsConfig){.pid = victim, .demangle = true});
    run->suppressions = suppress_new();
    vec_init(&run->findings, sizeof(RunFinding *));
}

static void close_run(Run *run)
{
    if (run->commands) // a record has switched them on
        commands_stop(run);
    if (run->report)
        findings_close(run);
    profiles_forget(run);
    vocabulary_free(run->vocabulary);
    symbols_free(run->symbols);
    suppress_free(run->suppressions);
    wire_consumer_free(run->consumer);
    wire_unmap(run->shared);
}

static void give_records(Run *run, const u8 *data, size_t size)
{
    static u64 words[WIRE_RECORD_BYTES_MAX / 8];

    for (u32 i = 0; size >= 4 && i < RECORDS_MAX; i++) {
        size_t count = min_u64(data[1] | (u64)(data[2] & 7) << 8, (size - 4) / 8);
        memcpy(words, data + 4, count * 8);
        run_take(run, &(WireRecord){.type = (WireRecordType)data[0], .ring = data[3], .stamp = i,
                                    .words = words, .count = count});
        data += 4 + count * 8;
        size -= 4 + count * 8;
    }
}

static void take(void *arg, const WireRecord *record)
{
    run_take(arg, record);
}

// Two positions of 3 bytes each, then what stands in the ring.
static void give_ring(Run *run, const u8 *data, size_t size)
{
    WireRing *ring = &run->shared->rings[0];

    if (size < 8)
        return;
    run->shared->header.ring_high = 1;
    ring->state = RING_OWNED;
    ring->read = (data[0] | data[1] << 8 | data[2] << 16) & ~7u;
    ring->write = ring->read + (data[3] | data[4] << 8 | data[5] << 16);
    memcpy(ring->data, data + 8, min_u64(size - 8, WIRE_RING_BYTES));
    for (int i = 0; i < 3; i++)
        wire_drain(run->consumer, i > 0, take, run);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    Run run;

    if (size < 2)
        return 0;
    open_run(&run, "memcheck");
    (data[0] & 1 ? give_ring : give_records)(&run, data + 1, size - 1);
    FUZZ_CHECK(run.info.pid == victim); // not whom a record names
    close_run(&run);
    return 0;
}
