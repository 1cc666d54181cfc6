// SPDX-License-Identifier: MIT
//
// Containers of many kinds, and an allocator of its own that takes memory in chunks.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

class Pool {
public:
    ~Pool()
    {
        for (char *chunk : chunks)
            operator delete[](chunk);
    }
    void *take(std::size_t size)
    {
        size = (size + 15) & ~std::size_t{15};
        if (chunks.empty() || used + size > chunk_bytes) {
            chunks.push_back(static_cast<char *>(operator new[](chunk_bytes)));
            used = 0;
        }
        used += size;
        return chunks.back() + used - size;
    }

private:
    static constexpr std::size_t chunk_bytes = 32768;
    std::vector<char *> chunks;
    std::size_t used = 0;
};

template <typename T> struct PoolAllocator {
    using value_type = T;
    explicit PoolAllocator(Pool *p) : pool(p) {}
    template <typename U> PoolAllocator(const PoolAllocator<U> &other) : pool(other.pool) {}
    T *allocate(std::size_t n) { return static_cast<T *>(pool->take(n * sizeof(T))); }
    void deallocate(T *, std::size_t) {}
    bool operator==(const PoolAllocator &other) const { return pool == other.pool; }
    bool operator!=(const PoolAllocator &other) const { return pool != other.pool; }
    Pool *pool;
};

struct alignas(128) Aligned {
    char bytes[256];
};

} // namespace

int main(int argc, char **argv)
{
    const int n = argc > 1 && std::strcmp(argv[1], "small") == 0 ? 500 : 20000;
    std::map<std::string, std::vector<int>> tree;
    std::unordered_map<int, std::unique_ptr<std::string>> table;
    Pool pool;
    std::list<int, PoolAllocator<int>> numbers{PoolAllocator<int>(&pool)};
    std::vector<std::unique_ptr<Aligned>> aligned;

    for (int i = 0; i < n; i++) {
        tree["a key that is not short " + std::to_string(i)].assign(i % 50, i);
        table[i] = std::make_unique<std::string>(i % 100, 'x');
        numbers.push_back(i);
        if (i % 10 == 0)
            aligned.push_back(std::make_unique<Aligned>());
    }
    for (int i = 0; i < n; i += 2)
        table.erase(i);
    std::size_t sum = 0;
    for (const auto &entry : tree)
        sum += entry.second.size();
    std::printf("%zu %zu %zu %zu\n", sum, table.size(), numbers.size(), aligned.size());
    return 0;
}
