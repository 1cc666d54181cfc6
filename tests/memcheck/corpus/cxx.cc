// SPDX-License-Identifier: MIT
//
// C++: pairs of new and delete that do not belong together and all that do, objects used after
// their end, and the library's containers, which make no error of their own.
// BUILD -std=c++17 -fsized-deallocation -Wno-deprecated-declarations -pthread -fno-builtin
#include "corpus.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

template <typename T> static NOINLINE T *opaque(T *p)
{
    HIDE(p);
    return p;
}

struct Shape {
    virtual ~Shape() {}
    virtual int area() { return 1; }
    int tag = 3;
};

struct Square : Shape {
    int side = 4;
    int area() override { return side * side; }
};

CASE(malloc_delete)
{
    int *p = opaque((int *)malloc(8));
    ::operator delete(p); // EXPECT memcheck mismatched-free block=inside:0 of=8 alloc=-1
}

CASE(malloc_delete_array)
{
    char *p = opaque((char *)malloc(8));
    ::operator delete[](p); // EXPECT memcheck mismatched-free block=inside:0 of=8 alloc=-1
}

CASE(new_free)
{
    int *p = opaque(new int(5));
    free(p); // EXPECT memcheck mismatched-free block=inside:0 of=4 alloc=-1
}

CASE(new_array_free)
{
    int *p = opaque(new int[5]);
    free(p); // EXPECT memcheck mismatched-free block=inside:0 of=20 alloc=-1
}

CASE(new_array_delete)
{
    int *p = opaque(new int[5]);
    delete p; // EXPECT memcheck mismatched-free block=inside:0 of=20 alloc=-1
}

CASE(new_delete_array)
{
    int *p = opaque(new int);
    delete[] p; // EXPECT memcheck mismatched-free block=inside:0 of=4 alloc=-1
}

CASE(new_realloc)
{
    int *p = opaque(new int);
    void *q = realloc(p, 100); // EXPECT memcheck mismatched-free block=inside:0 of=4
    HIDE(q);
}

CASE(calloc_delete)
{
    int *p = opaque((int *)calloc(1, 8));
    delete p; // EXPECT memcheck mismatched-free block=inside:0 of=8 alloc=-1
}

CASE(mismatch_not_wanted)
{
    // OPTIONS --show-mismatched-frees=no
    int *p = opaque((int *)malloc(8));
    ::operator delete(p);
}

CASE(delete_twice)
{
    int *p = opaque(new int);
    delete p;
    HIDE(p);
    delete p; // EXPECT memcheck invalid-free block=inside:0 of=4 state=freed free=-2
}

CASE(delete_array_twice)
{
    int *p = opaque(new int[3]);
    delete[] p;
    HIDE(p);
    delete[] p; // EXPECT memcheck invalid-free block=inside:0 of=12 state=freed free=-2
}

CASE(every_pair_that_belongs_together)
{
    delete opaque(new int);
    delete[] opaque(new int[7]);
    ::operator delete(opaque(::operator new(10)), (size_t)10);
    ::operator delete[](opaque(::operator new[](10)), (size_t)10);
    ::operator delete(opaque(::operator new(10, std::nothrow)), std::nothrow);
    ::operator delete[](opaque(::operator new[](10, std::nothrow)), std::nothrow);
    ::operator delete(opaque(::operator new(100, std::align_val_t(64))), std::align_val_t(64));
    ::operator delete[](opaque(::operator new[](100, std::align_val_t(128))),
                        std::align_val_t(128));
    ::operator delete(opaque(::operator new(96, std::align_val_t(32))), (size_t)96,
                      std::align_val_t(32));
    delete opaque((int *)nullptr);
}

CASE(aligned_new_is_aligned)
{
    struct alignas(256) Wide { char c[256]; };
    Wide *w = opaque(new Wide);
    CHECK((uintptr_t)w % 256 == 0);
    w->c[255] = 1;
    delete w;
}

CASE(aligned_new_overrun)
{
    void *p = opaque(::operator new(100, std::align_val_t(64)));
    WRITE1((u8 *)p + 100); // EXPECT memcheck invalid-write size=1 block=after:0 of=100 alloc=-1
    ::operator delete(p, std::align_val_t(64));
}

CASE(new_is_undefined)
{
    int *p = opaque(new int);
    BRANCH(*p); // EXPECT memcheck uninit-branch origin=heap:-1
    delete p;
}

CASE(new_with_braces_is_defined)
{
    int *p = opaque(new int{});
    BRANCH(*p);
    delete p;
}

CASE(use_after_delete)
{
    Square *s = opaque(new Square);
    delete s;
    HIDE(s);
    READ4(&s->side); // EXPECT memcheck invalid-read size=4 block=inside:12 of=16 state=freed
}

CASE(virtual_call)
{
    Shape *s = opaque((Shape *)new Square);
    CHECK(s->area() == 16);
    delete s;
}

CASE(virtual_call_after_delete)
{
    Shape *s = opaque((Shape *)new Square);
    delete s;
    HIDE(s);
    corpus_sink[0] = *(volatile u64 *)s;
    // EXPECT memcheck invalid-read size=8 block=inside:0 of=16 state=freed
}

CASE(member_forgotten_by_constructor)
{
    struct Thing {
        int a, b;
        Thing() : a(1) {}
    };
    Thing *t = opaque(new Thing);
    BRANCH(t->a);
    BRANCH(t->b); // EXPECT memcheck uninit-branch origin=heap:-2
    delete t;
}

CASE(vector_behind)
{
    std::vector<int> v(10);
    int *p = opaque(v.data());
    READ4(p + 10); // EXPECT memcheck invalid-read size=4 block=after:0 of=40
}

CASE(iterator_invalidated)
{
    std::vector<int> v(4, 1);
    int *p = opaque(&v[0]);
    v.resize(1000);
    HIDE(p);
    READ4(p); // EXPECT memcheck invalid-read size=4 block=inside:0 of=16 state=freed
}

CASE(string_view_of_a_dead_string)
{
    std::string *s = new std::string("a string that is long enough to be on the heap");
    std::string_view view = *s;
    delete s;
    const char *p = view.data();
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=47 state=freed
}

CASE(strings)
{
    std::string s;
    for (int i = 0; i < 200; i++)
        s += char('a' + i % 26);
    std::string t = s + s.substr(10, 30), u = std::move(s);
    CHECK(t.size() == 230 && t.find("xyz") == 23 && u.size() == 200);
    std::ostringstream out;
    out << t << 5 << ' ' << 2.5;
    CHECK(out.str().size() == 235);
    std::string small = "small", copy = small;
    CHECK(copy == small && t < copy);
}

CASE(containers)
{
    std::map<std::string, int> m;
    std::unordered_map<int, std::string> h;
    std::vector<std::pair<int, std::string>> v;
    for (int i = 0; i < 300; i++) {
        m[std::to_string(i * 7919 % 1000)] = i;
        h[i] = std::to_string(i);
        v.emplace_back(i * 31 % 300, "x");
    }
    std::sort(v.begin(), v.end());
    CHECK(h.at(55) == "55" && v[0].first == 0 && m.count("0") == 1);
    for (int i = 0; i < 300; i += 2)
        h.erase(i);
    CHECK(h.size() == 150);
}

CASE(smart_pointers)
{
    auto shared = std::make_shared<Square>();
    std::weak_ptr<Square> weak = shared;
    auto unique = std::make_unique<int[]>(10);
    CHECK(unique[5] == 0 && weak.lock()->area() == 16);
    shared.reset();
    CHECK(weak.expired());
    std::function<int(int)> f = [p = std::move(unique)](int i) mutable { return p[i]; }(3) == 0
        ? std::function<int(int)>([](int i) { return i; }) : nullptr;
    CHECK(f(4) == 4);
}

CASE(optional_and_variant)
{
    std::optional<std::string> none, some = "value";
    std::variant<int, std::string, double> v = 5;
    v = std::string("text that does not fit into the object itself");
    CHECK(!none && some->size() == 5 && std::get<std::string>(v).size() == 45);
    std::optional<char> c;
    auto d = c;
    CHECK(!d.has_value());
}

static NOINLINE int thrower(int depth)
{
    std::string guard(100, 'x');
    if (depth == 0)
        throw std::runtime_error("deep");
    return thrower(depth - 1) + (int)guard.size();
}

CASE(exceptions)
{
    int caught = 0;
    for (int i = 0; i < 5; i++) {
        try {
            thrower(i * 3);
        } catch (const std::exception &e) {
            caught += strcmp(e.what(), "deep") == 0;
        }
    }
    CHECK(caught == 5);
}

CASE(exception_rethrown)
{
    std::exception_ptr kept;
    try {
        try {
            thrower(2);
        } catch (...) {
            throw;
        }
    } catch (...) {
        kept = std::current_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (const std::runtime_error &e) {
        CHECK(e.what()[0] == 'd');
    }
}

CASE(frame_unwound_is_dead)
{
    static u8 *volatile left;
    struct Keep {
        u8 bytes[4000];
        Keep() { left = bytes + 50; bytes[50] = 1; }
    };
    try {
        auto inner = []() __attribute__((noinline)) {
            volatile Keep keep;
            throw 5;
        };
        inner();
    } catch (int) {
    }
    READ1(left); // EXPECT memcheck invalid-read size=1 where=stack below=yes
}

CASE(bad_alloc_is_thrown)
{
    // NOT-VALGRIND bad-alloc
    bool thrown = false;
    size_t much = (size_t)1 << 60;
    HIDE(much);
    try {
        opaque(::operator new(much));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK(!opaque(::operator new(much, std::nothrow)));
}

CASE(new_negative)
{
    size_t much = (size_t)-8;
    HIDE(much);
    void *p = opaque(::operator new(much, std::nothrow)); 
    // EXPECT-VALGRIND memcheck fishy-size fn=__builtin_new arg=size why=names-of-new
    // EXPECT-MUNINN memcheck fishy-size arg=size why=names-of-new
    CHECK(!p);
}

CASE(uncaught)
{
    // DIES SIGABRT
    thrower(1);
}

CASE(thread_of_the_library)
{
    std::vector<int> results(2);
    std::thread a([&] { results[0] = 1; }), b([&] { results[1] = 2; });
    a.join();
    b.join();
    CHECK(results[0] + results[1] == 3);
}

CASE(thread_of_the_library_with_a_bug)
{
    std::vector<int> results(2);
    int *p = opaque(results.data());
    std::thread a([p] {
        WRITE4(p + 2); // EXPECT memcheck invalid-write size=4 block=after:0 of=8
    });
    a.join();
}

CASE(static_objects)
{
    static std::map<int, std::string> table = {{1, "one"}, {2, "two"}};
    thread_local std::string own = "thread local string that is on the heap";
    CHECK(table[2] == "two" && own.size() == 39);
}

CASE(arrays_of_objects)
{
    std::string *a = opaque(new std::string[20]);
    for (int i = 0; i < 20; i++)
        a[i] = std::string(i * 3, 'q');
    CHECK(a[19].size() == 57);
    delete[] a;
}

CASE(array_of_objects_deleted_as_one)
{
    // The pointer that delete gets is behind the count of elements.
    struct Thing {
        int x = 1;
        ~Thing() { corpus_sink[0] = x; }
    };
    Thing *a = opaque(new Thing[3]);
    delete a; // EXPECT memcheck invalid-free block=inside:8 of=20
}
