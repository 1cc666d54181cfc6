// SPDX-License-Identifier: MIT
//
// C++ allocation churn: maps of strings, vectors that grow, lists of virtual objects owned by
// unique_ptr, all born and dying in a random order. The argument is the number of rounds; the
// checksum printed at the end depends on every object, so nothing can be optimised away.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Random {
    uint64_t state = 0x9e3779b97f4a7c15u;
    uint64_t next()
    {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t area() const = 0;
};

struct Square final : Shape {
    uint64_t side;
    explicit Square(uint64_t s) : side(s) {}
    uint64_t area() const override { return side * side; }
};

struct Polygon final : Shape {
    std::vector<uint32_t> sides;
    explicit Polygon(uint64_t n)
    {
        for (uint64_t i = 0; i < n; i++)
            sides.push_back(static_cast<uint32_t>(i * n));
    }
    uint64_t area() const override
    {
        uint64_t sum = 0;
        for (uint32_t side : sides)
            sum += side;
        return sum;
    }
};

uint64_t churn_shapes(Random &random, std::vector<std::unique_ptr<Shape>> &pool)
{
    uint64_t sum = 0;
    for (int i = 0; i < 4000; i++) {
        auto &slot = pool[random.next() % pool.size()];
        if (slot)
            sum += slot->area();
        if (random.next() & 1)
            slot = std::make_unique<Square>(random.next() % 1000);
        else
            slot = std::make_unique<Polygon>(random.next() % 40);
    }
    return sum;
}

uint64_t churn_strings(Random &random)
{
    std::map<std::string, std::string> sorted;
    std::unordered_map<std::string, size_t> counted;
    for (int i = 0; i < 1500; i++) {
        std::string key = "key-" + std::to_string(random.next() % 700);
        sorted[key] += std::string(random.next() % 30, 'x');
        counted[key] += sorted[key].size();
        if (random.next() % 8 == 0)
            sorted.erase(key);
    }
    uint64_t sum = 0;
    for (auto &[key, value] : sorted)
        sum += key.size() * value.size() + counted[key];
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
    Random random;
    std::vector<std::unique_ptr<Shape>> pool(5000);
    uint64_t sum = 0;
    for (int i = 0; i < rounds; i++)
        sum = sum * 31 + churn_shapes(random, pool) + churn_strings(random);
    std::printf("%016llx\n", static_cast<unsigned long long>(sum));
    return 0;
}
