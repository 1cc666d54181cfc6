// SPDX-License-Identifier: MIT
//
// Selections and trees: every metric under every filter equals a plain recomputation, trees
// sum up exactly, and the shapes and labels of small trees are as they should be.
#include "recording_world.h"

// ---------------------------------------------------------------- selections beside a model
static const char *const functions[] = { "alpha", "beta(int)", "gamma", "ns::delta(char)", NULL };
static const char *const objects[] = { "/bin/prog", "/lib/libone.so", NULL };

static u32 name_of(u32 context, u32 salt, u32 count)
{
    return (context * 2654435761u + salt) >> 7 & 1023 ? (context * 7 + salt) % count : 0;
}

static void name_contexts(World *world)
{
    for (u32 i = 1; i <= world->site_count; i++) {
        RecordedFrame frame = { .function = functions[name_of(i, 1, 5)], .file = "f.c",
                                .directory = i % 2 ? "/src/one" : "/src/two", .line = i % 3,
                                .object = objects[name_of(i, 2, 3)], .pc = 0x1000 + i };
        if (i % 11)
            recording_set_frames(world->writer, i, &frame, 1);
    }
}

typedef bool FrameFn(const RecordedFrame *frame);

static bool stack_has(Recording *recording, u32 context, FrameFn *fn)
{
    for (; context; context = recording_context(recording, context)->parent) {
        const RecordedContext *recorded = recording_context(recording, context);
        for (u32 i = 0; i < recorded->frame_count; i++)
            if (fn(recording_frame(recording, recorded->first_frame + i)))
                return true;
    }
    return false;
}

static bool is_beta(const RecordedFrame *frame)
{
    return frame->function && strcmp(frame->function, "beta(int)") == 0;
}

static bool has_m_or_p(const RecordedFrame *frame)
{
    return frame->function && strpbrk(frame->function, "mp");
}

static bool is_libone(const RecordedFrame *frame)
{
    return frame->object && strcmp(frame->object, "/lib/libone.so") == 0;
}

static bool is_in_two(const RecordedFrame *frame)
{
    return frame->directory && strcmp(frame->directory, "/src/two") == 0;
}

typedef struct Filter {
    Selection selection;
    FrameFn *fn; // NULL: any
    bool negated;
} Filter;

// What each metric must be for a site, from the list of events.
static void model_metric(World *world, Recording *recording, const Filter *filter, Metric metric,
                         u64 peak_ns, i64 *values)
{
    const Selection *s = &filter->selection;
    u64 to = metric == METRIC_PEAK || s->at_peak ? peak_ns : s->to_ns ? s->to_ns : UINT64_MAX;
    u64 from = metric == METRIC_PEAK || s->at_peak ? 0 : s->from_ns;
    u32 spaces = s->spaces ? s->spaces : 1;

    memset(values, 0, world->site_count * sizeof(i64));
    for (size_t i = 0; i < world->count; i++) {
        const HeapEvent *event = &world->events[i];
        const RecordedSite *site = &world->sites[event->site];
        i64 *value = &values[event->site];
        bool is_alloc = event->kind == EVENT_ALLOC;
        u64 ns = event->time.ns;
        i64 size = (i64)event->size, sign = is_alloc ? size : -size;
        if (!(spaces >> site->space & 1) || (s->thread && s->thread != site->thread) ||
            (filter->fn && stack_has(recording, site->context, filter->fn) == filter->negated) ||
            event->size < s->min_size || (s->max_size && event->size > s->max_size))
            continue;
        switch (metric) {
        case METRIC_LIVE:
        case METRIC_PEAK: *value += ns < to ? sign : 0; break;
        case METRIC_ALLOCATED: *value += is_alloc && ns >= from && ns < to ? size : 0; break;
        case METRIC_ALLOCATIONS: *value += is_alloc && ns >= from && ns < to; break;
        case METRIC_TEMPORARY:
            *value += !is_alloc && event->flags & EVENT_TEMPORARY && ns >= from && ns < to;
            break;
        case METRIC_LEAKED:
            *value += event->born_ns >= from && event->born_ns < to ? sign : 0;
            break;
        default: *value += ns >= from && ns < to ? sign : 0; break;
        }
    }
}

static u64 model_peak(const World *world, u32 spaces)
{
    u64 now = 0, high = 0, ns = 0;

    for (size_t i = 0; i < world->count; i++) {
        const HeapEvent *event = &world->events[i];
        if (!(spaces >> world->sites[event->site].space & 1))
            continue;
        now += event->kind == EVENT_ALLOC ? event->size : 0 - event->size;
        if (now > high) {
            high = now;
            ns = event->time.ns + 1;
        }
    }
    return ns;
}

TEST(every_metric_under_every_filter_is_what_the_events_say)
{
    World world;

    world_begin(&world, 70, 60, 0);
    world.ns_step = 3000;
    name_contexts(&world);
    world_events(&world, 60000, 500);
    world_close(&world);
    Recording *recording = world_open(&world);
    u64 end = world.now.ns;
    const Filter filters[] = {
        { .selection = { 0 } },
        { .selection = { .spaces = 7 } },
        { .selection = { .from_ns = end / 3, .to_ns = end / 2, .spaces = 7 } },
        { .selection = { .from_ns = end / 3, .thread = 2 } },
        { .selection = { .function = "beta", .spaces = 7 }, .fn = is_beta },
        { .selection = { .function = "!b*(int)", .to_ns = end / 4, .spaces = 7 }, .fn = is_beta,
          .negated = true },
        { .selection = { .function = "/[mp]/", .spaces = 7 }, .fn = has_m_or_p },
        { .selection = { .object = "lib[no]ne.so", .spaces = 7 }, .fn = is_libone },
        { .selection = { .object = "!/lib/*", .spaces = 7, .from_ns = end / 2 },
          .fn = is_libone, .negated = true },
        { .selection = { .file = "/src/two/?.c", .spaces = 7 }, .fn = is_in_two },
        { .selection = { .min_size = 50, .max_size = 300, .spaces = 7 } },
        { .selection = { .min_size = 400, .from_ns = end / 5, .to_ns = end / 4 } },
    };
    i64 *got = calloc(world.site_count, sizeof(i64));
    i64 *wanted = calloc(world.site_count, sizeof(i64));
    for (u32 i = 0; i < ARRAY_LEN(filters); i++) {
        u32 spaces = filters[i].selection.spaces ? filters[i].selection.spaces : 1;
        u64 peak_ns = model_peak(&world, spaces);
        for (u32 metric = 0; metric < METRIC_COUNT; metric++) {
            if (metric == METRIC_PEAK && spaces != 1)
                continue; // the peak of a sum is a state of the writer's, not kept here
            char *error = NULL;
            if (!selection_metric(recording, &filters[i].selection, (Metric)metric, got, &error))
                FAIL("filter %u metric %u: %s", i, metric, error);
            model_metric(&world, recording, &filters[i], (Metric)metric, peak_ns, wanted);
            for (u32 k = 0; k < world.site_count; k++)
                if (got[k] != wanted[k])
                    FAIL("filter %u metric %u site %u: %lld, not %lld", i, metric, k,
                         (long long)got[k], (long long)wanted[k]);
        }
    }
    free(got);
    free(wanted);
    recording_free(recording);
    world_end(&world);
}

TEST(what_leaked_is_known_of_the_living_without_events)
{
    World world;

    for (u32 listed = 0; listed < 2; listed++) {
        world_begin(&world, 75, 40, 150000);
        world_events(&world, 100000, 3000);
        for (size_t i = 0; listed && i < world.live_count; i++)
            if (world.sites[world.live[i].site].space == SPACE_HEAP)
                recording_add_living(world.writer, &world.live[i]);
        world_close(&world);
        Recording *recording = world_open(&world);
        CHECK(recording_events_kept_since_ns(recording) > 0);
        Filter filter = { .selection = { .from_ns = world.now.ns / 5,
                                         .to_ns = world.now.ns / 10 * 9 } };
        i64 got[40], wanted[40];
        char *error = NULL;
        CHECK_EQ(recording_knows_living(recording, 1 << SPACE_HEAP), listed);
        CHECK_EQ(selection_metric(recording, &filter.selection, METRIC_LEAKED, got, &error),
                 listed);
        CHECK((error != NULL) != listed);
        free(error);
        model_metric(&world, recording, &filter, METRIC_LEAKED, 0, wanted);
        for (u32 i = 0; listed && i < world.site_count; i++)
            CHECK_EQ(got[i], wanted[i]);
        recording_free(recording);
        world_end(&world);
    }
}

TEST(lifetimes_choose_blocks)
{
    World world;
    enum { LEAST = 40000, MOST = 900000 };

    world_begin(&world, 71, 30, 0);
    world_events(&world, 50000, 800);
    world_close(&world);
    Recording *recording = world_open(&world);
    Selection selection = { .min_lifetime_ns = LEAST, .max_lifetime_ns = MOST, .spaces = 7 };
    SiteSums *sums = calloc(world.site_count, sizeof(SiteSums));
    u64 *frees = calloc(world.site_count, sizeof(u64));
    u64 *live = calloc(world.site_count, sizeof(u64));
    char *error = NULL;
    CHECK(selection_sums(recording, &selection, sums, &error));
    u64 last = recording_last(recording).ns;
    for (size_t i = 0; i < world.count; i++) {
        const HeapEvent *event = &world.events[i];
        u64 age = event->time.ns - event->born_ns;
        frees[event->site] += event->kind == EVENT_FREE && age >= LEAST && age <= MOST;
    }
    for (size_t i = 0; i < world.live_count; i++) {
        u64 age = last - world.live[i].born_ns;
        live[world.live[i].site] += age >= LEAST && age <= MOST;
    }
    for (u32 i = 0; i < world.site_count; i++) {
        CHECK_EQ(sums[i].frees, frees[i]);
        CHECK_EQ(sums[i].live_blocks, live[i]);
        CHECK_EQ(sums[i].allocations, frees[i] + live[i]);
    }
    free(sums);
    free(frees);
    free(live);
    recording_free(recording);
    world_end(&world);
}

TEST(what_cannot_be_answered_is_refused_with_a_reason)
{
    World world;
    char *error = NULL;

    world_begin(&world, 72, 30, 200000);
    world_events(&world, 200000, 100);
    world_close(&world);
    Recording *recording = world_open(&world);
    i64 values[30];
    CHECK(!selection_metric(recording, &(Selection){ .function = "/a(b/" }, METRIC_LIVE, values,
                            &error));
    CHECK(error && strstr(error, "/a(b/"));
    free(error);
    CHECK(!selection_metric(recording, &(Selection){ .min_size = 3 }, METRIC_LIVE, values,
                            &error));
    CHECK(error && strstr(error, "not kept"));
    free(error);
    u64 since = recording_events_kept_since_ns(recording);
    CHECK(selection_metric(recording, &(Selection){ .min_size = 3, .from_ns = since },
                           METRIC_ALLOCATED, values, &error));
    CHECK(selection_metric(recording, &(Selection){ 0 }, METRIC_LEAKED, values, &error));
    recording_free(recording);
    world_end(&world);
}

// ---------------------------------------------------------------- trees
// main -> run -> run -> lib_a -> lib_b -> malloc; main -> helper (inlined into run) -> new.
typedef struct SmallTree {
    World world;
    Recording *recording;
    i64 values[4];
} SmallTree;

static RecordedFrame app(const char *function, u32 line)
{
    return (RecordedFrame){ .function = function, .file = "app.c", .directory = "/src",
                            .object = "/bin/prog", .line = line };
}

static RecordedFrame library(const char *function)
{
    return (RecordedFrame){ .function = function, .object = "/lib/libone.so" };
}

static void small_begin(SmallTree *small)
{
    int error;
    World *world = &small->world;

    *world = (World){ 0 };
    snprintf(world->path, sizeof(world->path), "/tmp/muninn-tree-%d", (int)getpid());
    RecordingWriter *writer = recording_create(&(WriterConfig){ .path = world->path },
                                               &(RecordingInfo){ .executable = "/bin/prog" },
                                               &error);
    CHECK(writer != NULL);
    u32 module = recording_add_module(writer, &(RecordedModule){ .path = "/bin/strange" });
    CHECK_EQ(module, 1);
    u32 parents[] = { 0, 1, 2, 3, 4, 5, 1, 7, 1 };
    RecordedFrame frames[][2] = {
        { app("main", 10) }, { app("run", 20) }, { app("run", 21) }, { library("lib_a") },
        { library("lib_b") }, { library("malloc") }, { app("helper", 5), app("run", 22) },
        { library("operator new(unsigned long)") },
    };
    frames[6][0].inlined = true;
    for (u32 i = 0; i < 9; i++) {
        u32 context = recording_add_context(writer, parents[i], module, 0x401136 + i, true);
        CHECK_EQ(context, i + 1);
        if (i < 8)
            recording_set_frames(writer, context, frames[i], i == 6 ? 2 : 1);
    }
    u32 sites[] = { 6, 8, 9, 6 };
    for (u32 i = 0; i < 4; i++)
        recording_add_site(writer, &(RecordedSite){ .context = sites[i], .thread = i == 3 ? 2 : 1 });
    CHECK_EQ(recording_close(writer, &(Moment){ 0 }, &(RecordingEnd){ 0 }), 0);
    small->recording = world_open(world);
    memcpy(small->values, (i64[]){ 100, 30, 7, -1 }, sizeof(small->values));
}

static void small_end(SmallTree *small)
{
    recording_free(small->recording);
    unlink(small->world.path);
}

static void print_node(SmallTree *small, const Tree *tree, u32 node, u32 depth, char *text)
{
    char label[256];

    tree_node_label(small->recording, &tree->nodes[node], label, sizeof(label));
    sprintf(text + strlen(text), "%*s%s %lld\n", (int)depth, "", label,
            (long long)tree->nodes[node].value);
    for (u32 child = tree->nodes[node].first_child; child;
         child = tree->nodes[child].next_sibling) {
        CHECK_EQ(tree->nodes[child].parent, node);
        print_node(small, tree, child, depth + 1, text);
    }
}

static void check_tree(SmallTree *small, const TreeOptions *options, const char *wanted)
{
    char text[2048] = "";
    Tree *tree = tree_build(small->recording, small->values, options);

    CHECK(tree != NULL);
    print_node(small, tree, 0, 0, text);
    tree_free(tree);
    CHECK_STR(text, wanted);
}

TEST(trees_have_the_shape_that_was_asked_for)
{
    SmallTree small;

    small_begin(&small);
    check_tree(&small, &(TreeOptions){ 0 },
               "all 136\n main (app.c:10) 136\n  run (app.c:20) 99\n   run (app.c:21) 99\n"
               "    lib_a (in /lib/libone.so) 99\n     lib_b (in /lib/libone.so) 99\n"
               "      malloc (in /lib/libone.so) 99\n  run (app.c:22) 30\n"
               "   helper (app.c:5) 30\n    operator new(unsigned long) (in /lib/libone.so) 30\n"
               "  0x40113e: ??? (in /bin/strange) 7\n");
    check_tree(&small, &(TreeOptions){ .hide_allocators = true, .by_function = true,
                                       .collapse_recursion = true },
               "all 136\n main (app.c) 136\n  run (app.c) 129\n"
               "   lib_a (in /lib/libone.so) 99\n    lib_b (in /lib/libone.so) 99\n"
               "   helper (app.c) 30\n  0x40113e: ??? (in /bin/strange) 7\n");
    check_tree(&small, &(TreeOptions){ .fold_libraries = true, .by_function = true },
               "all 136\n main (app.c) 136\n  run (app.c) 129\n   run (app.c) 99\n"
               "    [libone.so] 99\n   helper (app.c) 30\n    [libone.so] 30\n"
               "  0x40113e: ??? (in /bin/strange) 7\n");
    check_tree(&small, &(TreeOptions){ .only_code = "app.c", .by_function = true },
               "all 136\n main (app.c) 136\n  run (app.c) 129\n   run (app.c) 99\n"
               "   helper (app.c) 30\n");
    check_tree(&small, &(TreeOptions){ .bottom_up = true, .only_code = "!libone.so" },
               "all 136\n run (app.c:21) 99\n  run (app.c:20) 99\n   main (app.c:10) 99\n"
               " helper (app.c:5) 30\n  run (app.c:22) 30\n   main (app.c:10) 30\n"
               " 0x40113e: ??? (in /bin/strange) 7\n  main (app.c:10) 7\n");
    check_tree(&small, &(TreeOptions){ .bottom_up = true, .fold_libraries = true },
               "all 136\n [libone.so] 99\n  run (app.c:21) 99\n   run (app.c:20) 99\n"
               "    main (app.c:10) 99\n helper (app.c:5) 30\n  run (app.c:22) 30\n"
               "   main (app.c:10) 30\n 0x40113e: ??? (in /bin/strange) 7\n  main (app.c:10) 7\n");
    small_end(&small);
}

TEST(labels_are_cut_at_a_character)
{
    SmallTree small;
    char label[12];

    small_begin(&small);
    Tree *tree = tree_build(small.recording, small.values, &(TreeOptions){ 0 });
    tree_node_label(small.recording, &tree->nodes[1], label, sizeof(label));
    CHECK_STR(label, "main (app.c");
    ((RecordedFrame *)recording_frame(small.recording, tree->nodes[1].frame))->function =
        "main_\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
    tree_node_label(small.recording, &tree->nodes[1], label, sizeof(label));
    CHECK_STR(label, "main_\xe2\x82\xac\xe2\x82\xac");
    tree_free(tree);
    small_end(&small);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

// Whether one of the next siblings shows the same.
static bool has_twin(Recording *recording, const Tree *tree, u32 node)
{
    const RecordedFrame *mine = recording_frame(recording, tree->nodes[node].frame);

    for (u32 other = tree->nodes[node].next_sibling; other && mine;
         other = tree->nodes[other].next_sibling) {
        const RecordedFrame *its = recording_frame(recording, tree->nodes[other].frame);
        if (its && mine->function && same_text(mine->function, its->function) &&
            same_text(mine->object, its->object) && mine->line == its->line)
            return true;
    }
    return false;
}

TEST(trees_of_random_stacks_sum_up_exactly)
{
    World world;

    world_begin(&world, 73, 3000, 0);
    name_contexts(&world);
    world_events(&world, 40000, 5000);
    world_close(&world);
    Recording *recording = world_open(&world);
    i64 *values = calloc(world.site_count, sizeof(i64)), sum = 0;
    u64 *counts = calloc(world.site_count, sizeof(u64)), count = 0;
    char *error = NULL;
    CHECK(selection_metric_counts(recording, &(Selection){ .spaces = 7 }, METRIC_ALLOCATED,
                                  values, counts, &error));
    for (u32 i = 0; i < world.site_count; i++) {
        sum += values[i];
        count += counts[i];
    }
    for (u32 bits = 0; bits < 64; bits++) {
        TreeOptions options = {
            .bottom_up = bits & 1, .collapse_recursion = bits & 2, .by_function = bits & 4,
            .fold_libraries = bits & 8, .hide_allocators = bits & 16,
            .only_code = bits & 32 ? "!*libone*" : NULL,
        };
        Tree *tree = tree_build_counts(recording, values, counts, &options);
        CHECK(tree != NULL);
        CHECK_EQ(tree->nodes[0].value, sum);
        CHECK(tree->nodes[0].count <= count);
        i64 self = 0;
        for (u32 i = 0; i < tree->count; i++) {
            i64 below = tree->nodes[i].self, before = INT64_MAX;
            for (u32 child = tree->nodes[i].first_child; child;
                 child = tree->nodes[child].next_sibling) {
                CHECK(tree->nodes[child].value <= before);
                CHECK(!has_twin(recording, tree, child));
                before = tree->nodes[child].value;
                below += before;
            }
            CHECK_EQ(below, tree->nodes[i].value);
            self += tree->nodes[i].self;
        }
        CHECK_EQ(self, sum);
        tree_free(tree);
    }
    free(values);
    free(counts);
    recording_free(recording);
    world_end(&world);
}
