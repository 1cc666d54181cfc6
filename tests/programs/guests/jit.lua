-- SPDX-License-Identifier: MIT
--
-- LuaJIT guest: hot traces, side exits, code that is flushed and compiled again, FFI calls, and C
-- calling back into Lua.
local ffi = require("ffi")
local jit = require("jit")
print("jit", jit.status())
jit.opt.start("hotloop=5", "hotexit=3")

local function collatz(limit)
    local longest, best = 0, 0
    for start = 1, limit do
        local n, steps = start, 0
        while n ~= 1 do
            if n % 2 == 0 then n = n / 2 else n = 3 * n + 1 end
            steps = steps + 1
        end
        if steps > longest then longest, best = steps, start end
    end
    return best, longest
end
print("collatz", collatz(20000))

local function mandel(size)
    local inside = 0
    for y = 0, size - 1 do
        for x = 0, size - 1 do
            local cr, ci, zr, zi = 2.5 * x / size - 2, 2 * y / size - 1, 0, 0
            local i = 0
            while i < 50 and zr * zr + zi * zi < 4 do
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                i = i + 1
            end
            if i == 50 then inside = inside + 1 end
        end
    end
    return inside
end
print("mandel", mandel(100))

ffi.cdef [[
typedef int (*compare_fn)(const void *, const void *);
void qsort(void *base, size_t count, size_t size, compare_fn compare);
int snprintf(char *out, size_t size, const char *format, ...);
size_t strlen(const char *text);
]]
local values = ffi.new("int[64]")
for i = 0, 63 do values[i] = (i * 37) % 101 end
local calls = 0
local compare = ffi.cast("compare_fn", function(left, right)
    calls = calls + 1
    return ffi.cast("const int *", left)[0] - ffi.cast("const int *", right)[0]
end)
ffi.C.qsort(values, 64, 4, compare)
compare:free()
local ordered = true
for i = 1, 63 do ordered = ordered and values[i - 1] <= values[i] end
print("qsort", ordered, calls > 63)

local buffer, total = ffi.new("char[64]"), 0
for i = 1, 3000 do
    ffi.C.snprintf(buffer, 64, "%d-%s", ffi.cast("int", i), "text")
    total = total + tonumber(ffi.C.strlen(buffer))
end
print("snprintf", total)

local sum = 0
for round = 1, 20 do
    jit.flush()
    local step = assert(loadstring("return function(n) return n + " .. round .. " end"))()
    for _ = 1, 500 do sum = step(sum) end
end
print("flushed", sum)

local parts = {}
for i = 1, 2000 do parts[#parts + 1] = tostring(i * 1.5) end
print("concat", #table.concat(parts, ","))
print(pcall(function() local none; return none.field end))

local pump = coroutine.wrap(function()
    for i = 1, 1000 do coroutine.yield(i * i) end
end)
local squares = 0
for _ = 1, 1000 do squares = squares + pump() end
print("coroutine", squares)
os.exit(4)
