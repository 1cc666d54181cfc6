// SPDX-License-Identifier: MIT
//
// Undefined values of variables on the stack, where they are used and where they have gone. Each is
// preceded by what its origin has to say.
#include <alloca.h>
#include <stdio.h>
#include <string.h>

struct pair {
    int a, b[4];
};

static volatile int sink;

__attribute__((noinline)) static void use(int x)
{
    if (x > 3)
        sink++;
}

__attribute__((noinline)) static int hand_out(void)
{
    int mine[3];
    return mine[2];
}

__attribute__((noinline)) static void fill(struct pair *to)
{
    struct pair from;
    from.a = 1;
    memcpy(to, &from, sizeof from);
}

static int inner(int depth)
{
    int deep;
    if (depth)
        return inner(depth - 1);
    fprintf(stderr, "-- local var \"deep\",\n");
    if (deep > 5)
        sink++;
    return 0;
}

int main(void)
{
    struct pair q, copied;
    int k;
    long wide[2];
    char bytes[40000];

    fprintf(stderr, "-- local var \"k\",\n");
    use(k);
    fprintf(stderr, "-- q.b[1],\n");
    use(q.b[1]);
    fprintf(stderr, "-- mine[2],\n");
    use(hand_out());
    inner(3);
    fprintf(stderr, "-- wide[1],\n");
    long moved = wide[1];
    use((int)(moved >> 2));
    fill(&copied);
    fprintf(stderr, "-- from.b[0],\n"); // not copied.b[0]
    use(copied.b[0]);
    fprintf(stderr, "-- bytes[39999],\n");
    use(bytes[39999]);
    {
        int block[2];
        fprintf(stderr, "-- block[1],\n");
        use(block[1]);
    }
    return 0;
}
