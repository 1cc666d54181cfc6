// SPDX-License-Identifier: MIT
//
// Asks for a snapshot of itself.
#include <muninn/client.h>
#include <stdlib.h>

void *volatile keep;

int main(void)
{
    keep = malloc(4321);
    return (int)MUNINN_MONITOR_COMMAND("detailed_snapshot by-request");
}
