# SPDX-License-Identifier: MIT
"""A reader of heap recordings that was written from docs/user/heap-recording.md alone and shares
nothing with the one in src/recording/: where they differ, the page or the code is wrong."""

import ctypes
import ctypes.util
import struct
import zlib

ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
KINDS = {1: "run", 2: "definitions", 3: "node", 4: "events", 5: "state", 6: "samples",
         7: "histograms", 8: "end", 9: "index", 10: "sums", 11: "living"}


class Bytes:
    """A cursor over bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        size = self.varint()
        return self.take(size - 1) if size else None

    def moment(self):
        return [self.varint() for _ in range(3)]

    def left(self):
        return len(self.data) - self.at


def decompress(data, size):
    out = ctypes.create_string_buffer(size)
    assert ZSTD.ZSTD_decompress(out, size, data, len(data)) == size, "not zstd"
    return out.raw


def chunks(file):
    """(kind, info, body) of every chunk, with every checksum looked at."""
    magic, version, zero = struct.unpack_from("<8sII", file, 0)
    assert (magic, version, zero) == (b"MUNHEAP\n", 4, 0)
    at = 16
    while at + 28 <= len(file):
        head = struct.unpack_from("<IHHIIIII", file, at)
        mark, kind, codec, info_size, stored, plain, body_crc, head_crc = head
        assert mark == 0x4b4e4843, f"no chunk at {at}"
        info = file[at + 28:at + 28 + info_size]
        body = file[at + 28 + info_size:at + 28 + info_size + stored]
        assert zlib.crc32(file[at:at + 24] + info) == head_crc
        assert (zlib.crc32(body) if stored else 0) == body_crc
        yield KINDS[kind], Bytes(info), Bytes(decompress(body, plain) if codec else body), at
        at += 28 + info_size + stored
        if KINDS[kind] == "index":
            offset, crc, zero, end = struct.unpack_from("<QII8s", file, at)
            assert (offset, zero, end) == (at - 28 - info_size - stored, 0, b"MUNHEAPE")
            assert crc == zlib.crc32(file[at:at + 8])
            return


def address_delta(packed):
    high = packed & (1 << 60) - 1
    return (high >> 1 ^ -(high & 1)) << 4 | packed >> 60


def glibc_usable(size):
    return 24 if size <= 24 else (size + 8 + 15) // 16 * 16 - 8


def events(body, sites, recording):
    """[is_free, flags, site, thread, moment, address, size, usable, born] of every event."""
    count, instructions, clock = body.varint(), body.varint(), body.varint()
    now = body.moment()
    sizes = [body.varint() for _ in range(7)]
    head, time, site, address, size, age, rare = (Bytes(body.take(n)) for n in sizes)
    last, born, before, places = [0, 0], [], [], {}
    for _ in range(count):
        bits = head.take(1)[0]
        if bits == 128:
            step, times = time.varint(), age.varint()
            alloc, free = before[-2:]
            for _ in range(times):
                for event in (alloc, free):
                    event = [*event[:4], list(event[4]), *event[5:]]
                    event[4][0] += step
                    event[8] += step
                    event[4][1] = free[4][1]
                    event[4][2] = now[2] = now[2] + (event[6] if sites[event[2]][0] == clock else 0)
                    alloc, free = free, event
                    yield event
            now = list(free[4])
            continue
        if bits == 6:
            number = born[-1][0]
            for _ in range(age.varint()):
                recording.in_rows += 1
                asked = size.varint()
                usable = glibc_usable(asked)
                born.append((number, places[usable // 16 % 64], asked, usable, now[0]))
                before = []
                for is_free in (0, 1):
                    now[2] += asked if sites[number][0] == clock else 0
                    before.append([is_free, 2 * is_free, number, sites[number][2], list(now),
                                   *born[-1][1:]])
                    yield before[-1]
            continue
        is_free, is_pair = bits & 1, bits & 5 == 4
        now[0] += 0 if bits & 128 else time.varint()
        if is_free and bits & 32:
            block = born[-1 - age.varint()]
        else:
            birth = now[0] - (age.varint() if is_free else 0)
            number = born[-1][0] if bits & 33 == 32 else site.varint()
            last[is_free] = (last[is_free] + address_delta(address.varint())) % (1 << 64)
            asked = size.varint()
            usable = asked + rare.signed() if bits & 16 else glibc_usable(asked)
            block = (number, last[is_free], asked, usable, birth)
            if not is_free:
                born.append(block)
        thread = rare.varint() if bits & 8 else sites[block[0]][2]
        now[2] += rare.signed() if bits & 64 else block[2] if sites[block[0]][0] == clock else 0
        now[1] += rare.signed() if instructions else 0
        flags = bits >> 1 & (1 if is_pair else 3)
        before = (before + [[is_free, flags, block[0], thread, list(now), *block[1:]]])[-2:]
        yield before[-1]
        if is_pair:
            places[block[3] // 16 % 64] = block[1]
            now[0] += 0 if bits & 128 else age.varint()
            now[2] += block[2] if sites[block[0]][0] == clock else 0
            before = [before[-1], [1, 2, block[0], thread, list(now), *block[1:]]]
            yield before[-1]


def node_sums(nets, rest):
    """{site: (bytes, blocks, usable, allocations, allocated, temporary, peak)}"""
    count = nets.varint()
    sizes = [nets.varint() for _ in range(4)]
    number, size, blocks, extra = (Bytes(nets.take(n)) for n in sizes)
    sums, site = {}, 0
    for _ in range(count):
        site += number.varint()
        live, more = size.signed(), blocks.signed()
        usable = live + extra.signed()
        has = rest.take(1)[0]
        allocations, allocated, _, _ = [rest.varint() if has & 1 else 0 for _ in range(4)]
        temporary = rest.varint() if has & 2 else 0
        if has & 4:
            rest.varint()
        sums[site] = (live, more, usable, allocations, allocated, temporary,
                      rest.varint() if has & 8 else 0)
    assert rest.left() == 0
    return sums


class Recording:
    """All of a recording, in memory."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.file = file.read()
        self.texts, self.modules, self.contexts, self.sites = [None], [None], [None], []
        self.kinds = []  # of the pages of each site
        self.frames, self.threads, self.states = {}, {}, []
        self.nodes, self.events, self.samples, self.histograms = [], {}, [], {}
        self.end = self.run = None
        self.living, self.has_all_living = [], False
        self.in_rows = 0
        offsets, sums = [], None
        for kind, info, body, at in chunks(self.file):
            if kind == "sums":
                sums = body
            elif kind == "node":
                self.take_node(info, body, sums)
            elif kind == "index":
                self.check_index(info, body, offsets)
            else:
                getattr(self, "take_" + kind)(info, body)
            offsets.append((at, self.file[at:at + 28 + len(info.data)]))

    def check_index(self, info, body, offsets):
        assert info.varint() == len(offsets)
        at = 0
        for offset, head in offsets:
            at += body.varint()
            assert at == offset and body.take(len(head)) == head
        assert body.left() == 0

    def take_run(self, info, _):
        self.run = [info.text() for _ in range(4)] + [info.signed()] + [info.varint()
                                                                        for _ in range(6)]

    def take_definitions(self, info, body):
        info.varint()
        counts = [len(self.texts) - 1, len(self.modules), len(self.contexts), len(self.sites)]
        assert [body.varint() for _ in range(4)] == counts
        while body.left():
            kind = body.varint()
            if kind == 1:
                self.texts.append(body.text())
            elif kind == 2:
                fields = [self.texts[body.varint()]] + [body.varint() for _ in range(3)]
                self.modules.append((*fields, body.take(body.varint())))
            elif kind == 3:
                self.contexts.append((len(self.contexts) - body.varint(), body.varint(),
                                      body.varint()))
            elif kind == 4:
                context, count = body.varint(), body.varint()
                self.frames[context] = [
                    [self.texts[body.varint()] for _ in range(4)] + [body.varint()
                                                                     for _ in range(3)]
                    for _ in range(count)]
            elif kind == 5:
                number = body.varint()
                self.threads[number] = (body.signed(), self.texts[body.varint()],
                                        body.varint(), body.varint())
            else:
                assert kind == 6
                what = body.varint()
                self.sites.append((what & 3, body.varint(), body.varint()))
                self.kinds.append(what >> 2)

    def take_node(self, info, body, sums):
        level, first, count = (info.varint() for _ in range(3))
        start, end = info.moment(), info.moment()
        totals = [info.varint() for _ in range(9)]
        rest = [info.varint() for _ in range(9)]
        assert info.left() == 0
        self.nodes.append((level, first, count, start, end, totals, rest, node_sums(body, sums)))

    def take_events(self, info, body):
        self.events[info.varint()] = list(events(body, self.sites, self))

    def take_state(self, info, body):
        reason, label, moment = info.varint(), info.text(), info.moment()
        totals = [info.varint() for _ in range(9)]
        live, site = {}, 0
        for _ in range(body.varint()):
            site += body.varint()
            size, blocks = body.varint(), body.varint()
            live[site] = (size, blocks, size + body.signed())
        self.states.append((reason, label, moment, totals, live))

    def take_samples(self, info, body):
        info.varint()
        ns = 0
        for _ in range(info.varint()):
            ns += body.signed()
            self.samples.append((ns, body.varint(), body.varint(), body.varint()))

    def take_histograms(self, info, body):
        for _ in range(info.varint()):
            site = body.varint()
            self.histograms[site] = [[body.varint() for _ in range(body.varint())]
                                     for _ in range(2)]

    def take_living(self, info, body):
        info.varint()
        address = born = 0
        for _ in range(info.varint()):
            site = body.varint()
            address += body.signed()
            size = body.varint()
            usable = size + body.signed()
            born += body.signed()
            self.living.append((site, address, size, usable, born))
        self.has_all_living = info.varint() == len(self.living) + 1

    def take_end(self, info, _):
        self.end = (info.varint(), info.signed(), info.signed(), info.moment())
