-- SPDX-License-Identifier: MIT
--
-- The lua5.4 workload: recursion, closures, tables, string building, floating point.
--
-- usage: mix.lua ROUNDS
local rounds = tonumber(arg[1])

local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
end

local function sieve(limit)
    local composite, count = {}, 0
    for i = 2, limit do
        if not composite[i] then
            count = count + 1
            for j = i * i, limit, i do composite[j] = true end
        end
    end
    return count
end

local function words(count)
    local parts, seed = {}, 42
    for i = 1, count do
        seed = (seed * 1103515245 + 12345) % 2147483648
        parts[#parts + 1] = string.format("%x-%d", seed, i % 13)
    end
    table.sort(parts)
    local text = table.concat(parts, " ")
    local _, hits = text:gsub("(%x+)%-7", "%1")
    return #text + hits
end

local function orbit(steps)
    local x, y, vx, vy = 1.0, 0.0, 0.0, 1.0
    for _ = 1, steps do
        local r3 = (x * x + y * y) ^ 1.5
        vx, vy = vx - x / r3 * 0.001, vy - y / r3 * 0.001
        x, y = x + vx * 0.001, y + vy * 0.001
    end
    return string.format("%.6f %.6f", x, y)
end

local total, last = 0, ""
for round = 1, rounds do
    total = (total * 31 + fib(20) + sieve(20000) + words(2000) + round) % 1000000007
    last = orbit(20000)
end
print(total, last)
