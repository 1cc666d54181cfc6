// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[uncaught]: uncaught => SIGABRT core
// RUN[noexcept]: noexcept => SIGABRT core
// RUN[handler]: handler => exit 7
//
// An exception nobody catches ends the program as natively, message and core flag included.
#include "guest.h"
#include <exception>
#include <stdexcept>
#include <string>

#pragma GCC diagnostic ignored "-Wterminate"
static void silent() noexcept
{
    throw std::runtime_error("out of noexcept");
}

int main(int, char **argv)
{
    std::string what = argv[1];
    if (what == "handler")
        std::set_terminate([] { _exit(7); });
    if (what == "noexcept")
        silent();
    throw std::runtime_error("nobody catches this");
}
