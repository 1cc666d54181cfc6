# SPDX-License-Identifier: MIT
"""Random C programs whose undefined bits are known.

The program moves bytes between a few buffers in many ways and tests some of them. While the
program is written, a model follows which bits are undefined; so for every test it is known
whether memcheck has to report it, and for every bit that is printed that it is defined. All is in
one function, which is called once or many times and in several ways; the buffers are made anew
each time, so that each call is alike.
"""

HEAD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned char u8;
#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")
#define NOINLINE __attribute__((noinline, noclone))
static uint64_t sum;
static int null_fd;
static NOINLINE void hit(void) { __asm__ volatile("" : : : "memory"); }
static NOINLINE void from_stack(u8 *to, unsigned n)
{
    u8 local[64];
    u8 *p = local;
    HIDE(p);
    memcpy(to, p, n);
}
static NOINLINE void use_stack(void)
{
    u8 local[512];
    u8 *p = local;
    memset(p, 0x5a, sizeof(local));
    HIDE(p);
}
static void copy_bytes(u8 *to, const u8 *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = from[i];
}
static void copy_push(u8 *to, const u8 *from)
{
    __asm__ volatile("lea -256(%%rsp), %%rsp\n\tpushq %1\n\tpopq %0\n\tlea 256(%%rsp), %%rsp"
                     : "=m"(*(uint64_t *)to) : "m"(*(const uint64_t *)from) : "memory");
}
static void copy_x87(u8 *to, const u8 *from)
{
    __asm__ volatile("fldt (%1)\n\tfstpt (%0)" : : "r"(to), "r"(from) : "memory");
}
static void copy_rep(u8 *to, const u8 *from, unsigned long n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
static void copy_sse(u8 *to, const u8 *from)
{
    _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from));
}
#define BY_VALUE(n) \
    typedef struct Value##n { u8 b[n]; } Value##n; \
    static NOINLINE void take##n(u8 *to, int a, Value##n v) { memcpy(to, &v, n); (void)a; } \
    static NOINLINE Value##n give##n(const u8 *from) { Value##n v; memcpy(&v, from, n); return v; }
"""

VALUE_SIZES = (4, 8, 12, 16, 24, 40)
SIZES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
CALLS = ("direct", "thread", "handler", "jump")
BUFFERS, BUFFER_BYTES = 4, 48
REPEATS = (1, 1, 3, 400, 3000)


class Writer:
    """The program as it grows, and the model: per buffer and byte, the bits that are undefined and
    the values of those that are defined."""

    def __init__(self, random):
        self.random, self.lines = random, HEAD.splitlines()
        self.undefined = [[255] * BUFFER_BYTES for _ in range(BUFFERS)]
        self.values = [[0] * BUFFER_BYTES for _ in range(BUFFERS)]
        self.expected = set()  # (kind, line)
        self.lines += [f"BY_VALUE({n})" for n in VALUE_SIZES]

    def add(self, text):
        self.lines.append(text)
        return len(self.lines)

    def place(self, size):
        return self.random.randrange(BUFFERS), self.random.randrange(BUFFER_BYTES - size + 1)

    def move(self, to, at, source, start, size):
        self.undefined[to][at : at + size] = self.undefined[source][start : start + size]
        self.values[to][at : at + size] = self.values[source][start : start + size]

    def define(self, to, at, values):
        self.undefined[to][at : at + len(values)] = [0] * len(values)
        self.values[to][at : at + len(values)] = values

    def forget(self, to, at, size):
        self.undefined[to][at : at + size] = [255] * size
        self.values[to][at : at + size] = [0] * size

    def bits(self, to, at, size):
        """(undefined bits, values of the others) of a place, as numbers."""
        return tuple(int.from_bytes(bytes(a[to][at : at + size]), "little")
                     for a in (self.undefined, self.values))

    def put_bits(self, to, at, size, undefined, values):
        values &= ~undefined
        for array, number in ((self.undefined, undefined), (self.values, values)):
            number &= (1 << 8 * size) - 1
            array[to][at : at + size] = list(number.to_bytes(size, "little"))

    # ---- statements

    def fill(self):
        size = self.random.randrange(1, 25)
        to, at = self.place(size)
        byte = self.random.randrange(256)
        self.add(f"    memset(b{to} + {at}, {byte}, {size}); HIDE(b{to});")
        self.define(to, at, [byte] * size)

    def store(self):
        size = self.random.choice(list(SIZES))
        to, at = self.place(size)
        value = self.random.getrandbits(8 * size)
        self.add(f"    *({SIZES[size]} *)(b{to} + {at}) = ({SIZES[size]}){value}u; HIDE(b{to});")
        self.define(to, at, list(value.to_bytes(size, "little")))

    def copy(self):
        way = self.random.choice(("memcpy", "memmove", "bytes", "push", "x87", "rep", "sse", "take",
                                  "give", "word", "exchange"))
        fixed = {"push": 8, "x87": 10, "sse": 16}
        size = fixed.get(way) or self.random.randrange(1, 25)
        if way in ("take", "give"):
            size = self.random.choice(VALUE_SIZES)
        if way in ("word", "exchange"):
            size = self.random.choice(list(SIZES))
        (source, start), (to, at) = self.place(size), self.place(size)
        if source == to:
            to = (to + 1) % BUFFERS
        a, b = f"b{to} + {at}", f"b{source} + {start}"
        text = {
            "memcpy": f"memcpy({a}, {b}, {size})", "memmove": f"memmove({a}, {b}, {size})",
            "bytes": f"copy_bytes({a}, {b}, {size})", "push": f"copy_push({a}, {b})",
            "x87": f"copy_x87({a}, {b})", "rep": f"copy_rep({a}, {b}, {size})",
            "sse": f"copy_sse({a}, {b})",
            "take": f"take{size}({a}, 1, *(Value{size} *)({b}))",
            "give": f"*(Value{size} *)({a}) = give{size}({b})",
            "word": f"*({SIZES.get(size)} *)({a}) = *({SIZES.get(size)} *)({b})",
            "exchange": f"{{ {SIZES.get(size)} v = *({SIZES.get(size)} *)({b}); "
                        f"__atomic_exchange(({SIZES.get(size)} *)({a}), &v, &v, 5); }}",
        }[way]
        self.add(f"    {text}; HIDE(b{to}); HIDE(b{source});")
        self.move(to, at, source, start, size)

    def combine(self):
        """xor of two places, or a constant that makes bits defined."""
        size = self.random.choice(list(SIZES))
        (source, start), (to, at) = self.place(size), self.place(size)
        if source == to:
            to = (to + 1) % BUFFERS
        kind, place = SIZES[size], f"*({SIZES[size]} *)(b{to} + {at})"
        how = self.random.choice("^&|")
        value = self.random.getrandbits(8 * size)
        other = f"*({kind} *)(b{source} + {start})" if how == "^" else f"({kind}){value}u"
        self.add(f"    {place} = ({kind})({place} {how} {other}); HIDE(b{to});")
        (bad, known), (bad_too, known_too) = self.bits(to, at, size), (0, value)
        if how == "^":
            bad_too, known_too = self.bits(source, start, size)
        undefined = {"^": bad | bad_too, "&": bad & value, "|": bad & ~value}[how]
        result = {"^": known ^ known_too, "&": known & value, "|": known | value}[how]
        self.put_bits(to, at, size, undefined, result)

    def shift(self):
        to, at = self.place(8)
        count, left = self.random.randrange(1, 64), self.random.random() < 0.5
        self.add(f"    *(uint64_t *)(b{to} + {at}) {'<<' if left else '>>'}= {count}; HIDE(b{to});")
        self.put_bits(to, at, 8, *((n << count if left else n >> count) & (1 << 64) - 1
                                   for n in self.bits(to, at, 8)))

    def renew(self):
        to = self.random.randrange(BUFFERS)
        self.add(f"    free(b{to}); b{to} = malloc({BUFFER_BYTES}); HIDE(b{to});")
        self.forget(to, 0, BUFFER_BYTES)

    def clear(self):
        to = self.random.randrange(BUFFERS)
        self.add(f"    free(b{to}); b{to} = calloc({BUFFER_BYTES}, 1); HIDE(b{to});")
        self.define(to, 0, [0] * BUFFER_BYTES)

    def take_stack(self):
        size = self.random.randrange(1, 33)
        to, at = self.place(size)
        self.add(f"    use_stack(); from_stack(b{to} + {at}, {size}); HIDE(b{to});")
        self.forget(to, at, size)

    def check(self):
        size = self.random.choice(list(SIZES))
        source, start = self.place(size)
        mask = self.random.choice((1 << self.random.randrange(8 * size), (1 << 8 * size) - 1,
                                   self.random.getrandbits(8 * size) or 1))
        place = f"*({SIZES[size]} *)(b{source} + {start})"
        line = self.add(f"    if ({place} & ({SIZES[size]}){mask}u) hit(); HIDE(b{source});")
        undefined, values = self.bits(source, start, size)
        if undefined & mask and not values & mask:  # a one that is defined decides
            self.expected.add(("uninit-branch", line))

    def call_kernel(self):
        size = self.random.randrange(1, 20)
        source, start = self.place(size)
        line = self.add(f"    if (write(null_fd, b{source} + {start}, {size}) < 0) abort();")
        if any(self.undefined[source][start : start + size]):
            self.expected.add(("syscall-param", line))

    def print_defined(self):
        source = self.random.randrange(BUFFERS)
        for i in range(0, BUFFER_BYTES, 8):
            bits, _ = self.bits(source, i, 8)
            mask = ~bits & (1 << 64) - 1
            self.add(f"    sum = sum * 31 + (*(uint64_t *)(b{source} + {i}) & {mask}u);")

    def calculate(self):
        numbers = [self.random.uniform(-9, 9) for _ in range(4)]
        kind = self.random.choice(("float", "double", "long double"))
        self.add(f"    {{ volatile {kind} x = {numbers[0]!r}, y = {numbers[1]!r};"
                 f" for (int i = 0; i < 9; i++)"
                 f" x = x * y / {numbers[2]!r} + ({kind})i - {numbers[3]!r};"
                 f" sum += (uint64_t)(int64_t)(x > 1e15 || x < -1e15 ? 1 : x * 1000); }}")


STATEMENTS = (Writer.fill, Writer.store, Writer.copy, Writer.copy, Writer.copy, Writer.copy,
              Writer.combine, Writer.combine, Writer.shift, Writer.renew, Writer.clear,
              Writer.take_stack, Writer.check, Writer.check, Writer.check, Writer.call_kernel,
              Writer.print_defined, Writer.calculate)

ENDS = {
    "direct": "    for (int i = 0; i < REPEATS; i++) once();",
    "thread": "    pthread_t t; pthread_create(&t, 0, loop, 0); pthread_join(t, 0);",
    "handler": "    signal(SIGUSR1, handler); raise(SIGUSR1);",
    "jump": "    if (setjmp(place) < 2) jump();",
}


def generate(random):
    """(text of the program, {(kind, line)} that memcheck has to report)"""
    w = Writer(random)
    w.add("static NOINLINE void once(void)")
    w.add("{")
    for i in range(BUFFERS):
        w.add(f"    u8 *b{i} = malloc({BUFFER_BYTES}); HIDE(b{i});")
    for _ in range(random.randrange(20, 120)):
        random.choice(STATEMENTS)(w)
    w.print_defined()
    for i in range(BUFFERS):
        w.add(f"    free(b{i});")
    w.add("}")
    w.add(f"enum {{ REPEATS = {random.choice(REPEATS)} }};")
    w.add("static jmp_buf place;")
    w.add("static void *loop(void *p) { for (int i = 0; i < REPEATS; i++) once(); return p; }")
    w.add("static void handler(int n) { loop(0); (void)n; }")
    w.add("static NOINLINE void jump(void) { static int n = 1; loop(0); longjmp(place, ++n); }")
    w.add("int main(void)\n{\n    null_fd = open(\"/dev/null\", O_WRONLY);")
    w.add(ENDS[random.choice(CALLS)])
    w.add('    printf("%llx\\n", (unsigned long long)sum);')
    w.add("    (void)loop; (void)handler; (void)jump;")
    w.add("    return 0;\n}")
    return "\n".join(w.lines) + "\n", w.expected
