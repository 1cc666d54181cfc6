// SPDX-License-Identifier: MIT
//
// The program that `make demo` runs natively and under muninn: two threads draw
// the Mandelbrot set, a timer's signal handler counts ticks meanwhile, and a
// checksum shows that both runs computed the same.

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

enum {
    WIDTH = 72,
    HEIGHT = 20,
    THREADS = 2,
    ITERATIONS = 500000,
};

static char picture[HEIGHT][WIDTH + 1];
static uint64_t sums[THREADS];
static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
    (void)number;
    ticks = ticks + 1;
}

static int escape_time(double cx, double cy)
{
    double x = 0, y = 0;
    int n = 0;

    for (; n < ITERATIONS && x * x + y * y <= 4; n++) {
        double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
    }
    return n;
}

// Thread t draws every THREADS-th row.
static void *draw(void *argument)
{
    int thread = *(int *)argument;

    for (int row = thread; row < HEIGHT; row += THREADS) {
        for (int column = 0; column < WIDTH; column++) {
            int n = escape_time(-2.2 + 3.0 * column / WIDTH, -1.1 + 2.2 * row / (HEIGHT - 1));
            picture[row][column] = n == ITERATIONS ? '#' : " .:-=+*%"[n % 8];
            sums[thread] = sums[thread] * 31 + (uint64_t)n;
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    struct itimerval every_10_ms = {{0, 10000}, {0, 10000}};

    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &every_10_ms, NULL);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, draw, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    for (int row = 0; row < HEIGHT; row++)
        puts(picture[row]);
    printf("checksum %016llx\n", (unsigned long long)(sums[0] ^ sums[1]));
    return ticks > 0 ? 0 : 1;
}
