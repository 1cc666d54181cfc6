// SPDX-License-Identifier: MIT
//
// Something of everything that makes stacks hard to name: namespaces, templates, inlined
// calls from another folder, lambdas, functions cut into hot and cold parts, a destructor.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "include/inlined.h"

extern "C" int c_entry(int argument);

namespace zoo
{

template <typename T, int N> struct Cage {
    T animals[N];
    __attribute__((noinline)) T sum() const
    {
        T total{};
        for (auto &animal : animals)
            total += twice(animal);
        return total;
    }
    ~Cage();
};

template <typename T, int N> __attribute__((noinline)) Cage<T, N>::~Cage()
{
    std::printf("%d gone\n", N);
}

__attribute__((noinline)) int feed(const std::map<std::string, int> &food, int hungry)
{
    if (__builtin_expect(hungry > 1000, 0)) {
        std::fprintf(stderr, "too many: %d\n", hungry);
        throw hungry;
    }
    int eaten = 0;
    for (auto &[name, amount] : food)
        eaten += (int)name.size() * twice(amount);
    return eaten + hungry;
}

} // namespace zoo

namespace
{
__attribute__((noinline)) long hidden(std::vector<long> values)
{
    auto largest = [&values](long start) {
        for (long value : values)
            start = clamp_to(start, value);
        return start;
    };
    return largest(3) + values.back();
}
} // namespace

int main(int argc, char **)
{
    zoo::Cage<int, 4> small{ { argc, 2, 3, 4 } };
    zoo::Cage<double, 2> big{ { 1.5, 2.5 } };
    std::map<std::string, int> food{ { "hay", argc }, { "fish", 2 } };
    int total = small.sum() + (int)big.sum() + zoo::feed(food, argc) + c_entry(argc);
    std::printf("%d %ld\n", total, hidden({ 1, 2, argc }));
    return 0;
}
