// SPDX-License-Identifier: MIT
//
// Plain control sequences that every terminal of today knows; no database of terminals.
// Signals come through a descriptor, so that everything is waited for in one place.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "inspect/top/terminal.h"

enum { SEQUENCE_MS = 30, READ_BYTES = 64 };

static struct termios found; // as it was
static int signals = -1;
static int ended_by;
static u8 pending[READ_BYTES]; // read, not yet used
static size_t pending_count;

static void write_all(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, text, size);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return;
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
}

static void say(const char *sequence)
{
    write_all(sequence, strlen(sequence));
}

static void enter_screen(void)
{
    struct termios raw = found;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); // Ctrl-C and Ctrl-Z stay signals
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    say("\033[?1049h\033[?25l\033[H\033[2J"); // the other screen, no cursor
}

static void leave_screen(void)
{
    say("\033[0m\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

bool terminal_open(void)
{
    sigset_t set;

    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &found) != 0)
        return false;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(watched); i++)
        sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return false;
    enter_screen();
    return true;
}

void terminal_close(void)
{
    leave_screen();
    close(signals);
}

void terminal_size(u32 *ret_width, u32 *ret_height)
{
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;

    *ret_width = is_known ? size.ws_col : 80;
    *ret_height = is_known ? size.ws_row : 24;
}

void terminal_show(const char *frame, size_t size)
{
    say("\033[H");
    write_all(frame, size);
    say("\033[J");
}

int terminal_signal(void)
{
    return ended_by;
}

static int take_signal(void)
{
    struct signalfd_siginfo info;

    if (read(signals, &info, sizeof(info)) != sizeof(info))
        return KEY_NONE;
    if (info.ssi_signo == SIGTSTP) { // the shell gets its screen back meanwhile
        leave_screen();
        raise(SIGSTOP);
        enter_screen();
        return KEY_RESIZE;
    }
    if (info.ssi_signo == SIGWINCH)
        return KEY_RESIZE;
    ended_by = (int)info.ssi_signo;
    return KEY_QUIT;
}

// ------------------------------------------------------------------------- keys

static const struct {
    const char *sequence;
    Key key;
} sequences[] = {
    {"\033[A", KEY_UP},       {"\033OA", KEY_UP},        {"\033[B", KEY_DOWN},
    {"\033OB", KEY_DOWN},     {"\033[5~", KEY_PAGE_UP},  {"\033[6~", KEY_PAGE_DOWN},
    {"\033[H", KEY_HOME},     {"\033OH", KEY_HOME},      {"\033[1~", KEY_HOME},
    {"\033[F", KEY_END},      {"\033OF", KEY_END},       {"\033[4~", KEY_END},
    {"\r", KEY_ENTER},        {"\n", KEY_ENTER},         {"k", KEY_UP},
    {"j", KEY_DOWN},          {" ", KEY_PAGE_DOWN},      {"q", KEY_QUIT},
    {"Q", KEY_QUIT},          {"\004", KEY_QUIT},
};

static void drop(size_t count)
{
    pending_count -= count;
    memmove(pending, pending + count, pending_count);
}

// The length of a control sequence that we do not know: to its letter.
static size_t sequence_length(void)
{
    size_t length = 2;

    if (pending_count < 2 || (pending[1] != '[' && pending[1] != 'O'))
        return 1;
    while (length < pending_count && pending[length] < 0x40)
        length++;
    return length < pending_count ? length + 1 : pending_count;
}

static int take_key(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sequences); i++) {
        size_t length = strlen(sequences[i].sequence);
        if (pending_count >= length && memcmp(pending, sequences[i].sequence, length) == 0) {
            drop(length);
            return (int)sequences[i].key;
        }
    }
    u8 first = pending[0];
    drop(first == '\033' ? sequence_length() : 1);
    return first == '\033' ? KEY_NONE : KEY_OTHER + first;
}

// More bytes of a sequence come at once, or never.
static void complete_sequence(void)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};

    while (pending_count > 0 && pending_count < 4 && pending[0] == '\033' &&
           poll(&input, 1, SEQUENCE_MS) > 0) {
        ssize_t n = read(STDIN_FILENO, pending + pending_count, READ_BYTES - pending_count);
        if (n <= 0)
            return;
        pending_count += (size_t)n;
    }
}

int terminal_key(u64 timeout_ms)
{
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};

    if (pending_count > 0)
        return take_key();
    if (poll(fds, 2, (int)min_u64(timeout_ms, 1000000)) <= 0)
        return KEY_NONE;
    if (fds[1].revents)
        return take_signal();
    ssize_t n = read(STDIN_FILENO, pending, READ_BYTES);
    if (n <= 0)
        return n < 0 && errno == EINTR ? KEY_NONE : KEY_QUIT;
    pending_count = (size_t)n;
    complete_sequence();
    return take_key();
}
