// SPDX-License-Identifier: MIT
//
// Series of pairs in a stream: blocks that came and went, one after the other, from one stack and
// at one moment. What they have in common is found once.
#include "monitor/heap/stream_event.h"

// A series of pairs (HEAP_PAIRS), of a stack whose site is known.
typedef struct Series {
    u32 context;
    u32 pairs;        // and perhaps one block more, which is live
    const u64 *words;
} Series;

// Pairs that follow one of their series: what they have in common is found once, and their
// sums are added up here, and not in memory.
typedef struct PairRun {
    u32 count;
    u64 bytes, usable, largest;
    u8 *sizes_end; // in the recording
} PairRun;

static void end_run(Stream *stream, const PairRun *run, u32 number)
{
    HeapModel *model = stream->model;
    Site *site = &model->sites[number];
    u32 count = run->count;

    site->allocations += count;
    site->allocated_bytes += run->bytes;
    site->frees += count;
    site->temporary += count;
    window_add(&site->lifetimes, 0, count);
    model->allocations += count;
    model->frees += count;
    model->temporary += count;
    model->allocated_bytes += 2 * (run->usable + count * model->admin_bytes);
    stream->left -= 2 * count;
    writer_add_row(stream->writer, number, run->sizes_end, count, run->bytes, run->largest);
}

// Below this no block is seen by a peak or a snapshot, if there are at most so many of them.
static u64 least_seen(const Stream *stream, u32 *count)
{
    const HeapModel *model = stream->model;
    u64 heap = model->peaks[PEAK_HEAP].bytes - model->total[PEAK_HEAP];
    u64 all = model->peaks[PEAK_ALL].bytes - model->total[PEAK_ALL];
    u64 most = 2 * clock_bytes(model, HEAP_WORD_SIZE_MAX + HEAP_WORD_EXTRA_MAX);
    u64 clock_left = stream->limit_bytes - model->allocated_bytes;

    *count = (u32)min_u64(*count, (clock_left - 1) / most);
    return heap < model->admin_bytes ? 0 : min_u64(heap - model->admin_bytes, all);
}

// How many of these are where the last pair of their class was, and nobody's by now.
static USUAL u32 pairs_in_row(const Stream *stream, const u64 *words, u32 most)
{
    const EventEncoder *encoder = &stream->writer->encoder;
    const BlockTable *blocks = &stream->model->blocks;
    u64 seen = least_seen(stream, &most);
    u32 count = 0;

    for (; count < most; count++) {
        u64 address = heap_word_address(words[count]), size = heap_word_size(words[count]);
        u64 usable = size + heap_word_extra(words[count]);
        if (usable >= seen || !fits_row(encoder, address, size, usable) ||
            blocks_find(blocks, address) != NULL)
            break;
    }
    return count;
}

// `index` is behind a pair that took the short way. Returns the first that is not like it.
static USUAL u32 usual_run(Stream *stream, const Series *series, u32 index)
{
    const u64 *words = series->words + index;
    u32 most = (u32)min_u64(series->pairs - index, stream->left / 2);
    u32 number = ((const Context *)stream->model->contexts.data)[series->context].site;
    Site *site = &stream->model->sites[number];
    u8 *sizes_end = stream->writer->encoder.at[COLUMN_SIZE];
    u32 count = pairs_in_row(stream, words, most);
    u64 bytes = 0, extra = 0, largest = 0;

    for (u32 i = 0; i < count; i++) {
        u64 word = words[i], size = heap_word_size(word);
        bytes += size;
        extra += heap_word_extra(word);
        largest = max_u64(largest, size);
        count_size(site, size);
        sizes_end = encode_in_row(sizes_end, size);
    }
    if (count)
        end_run(stream, &(PairRun){count, bytes, bytes + extra, largest, sizes_end}, number);
    return index + count;
}

static WITH_BMI __attribute__((noinline)) u32 usual_run_bmi(Stream *stream, const Series *series,
                                                             u32 index)
{
    return usual_run(stream, series, index);
}

static __attribute__((noinline)) u32 usual_run_plain(Stream *stream, const Series *series,
                                                     u32 index)
{
    return usual_run(stream, series, index);
}

static HeapNew block_of_series(const Stream *stream, const Series *series, u32 index)
{
    u64 word = series->words[index], size = heap_word_size(word);
    return (HeapNew){
        .time = stream->time,
        .thread = stream->thread,
        .context = series->context,
        .address = heap_word_address(word),
        .size = size,
        .usable = size + heap_word_extra(word),
    };
}

static __attribute__((noinline)) bool usual_pair_of(Stream *stream, const Series *series, u32 index)
{
    u64 word = series->words[index], address = heap_word_address(word);
    return stream->left && usual_pair(stream, blocks_home(&stream->model->blocks, address),
                                      series->context, heap_word_place(word),
                                      heap_word_size(word), 0);
}

static __attribute__((noinline)) void take_last_of(Stream *stream, const Series *series)
{
    u64 word = series->words[series->pairs], address = heap_word_address(word);
    if (LIKELY(stream->left) &&
        LIKELY(usual_alloc(stream, blocks_home(&stream->model->blocks, address), series->context,
                           heap_word_place(word), heap_word_size(word))))
        return;
    HeapNew block = block_of_series(stream, series, series->pairs);
    stream_settle(stream);
    model_alloc(stream->model, &block);
    stream_look(stream);
}

void stream_take_series(Stream *stream, const u64 *at)
{
    u64 events = at[2], blocks = (u64)(next_record(at) - at) - HEAP_PAIRS_HEAD;
    Series series = {(u32)(at[0] >> 32), (u32)events / 2, at + HEAP_PAIRS_HEAD};

    if (events == 0 || events >> 16 || (events + 1) / 2 != blocks)
        return;
    for (u32 index = 0; index < series.pairs;) {
        if (LIKELY(usual_pair_of(stream, &series, index))) {
            index++;
            if (LIKELY(stream->writer))
                index = has_bmi() ? usual_run_bmi(stream, &series, index)
                                  : usual_run_plain(stream, &series, index);
            continue;
        }
        HeapNew block = block_of_series(stream, &series, index++);
        stream_settle(stream);
        model_pair(stream->model, &block, &block.time, 0);
        stream_look(stream);
    }
    if (events % 2)
        take_last_of(stream, &series);
}
