// SPDX-License-Identifier: MIT
//
// `muninn heap COMMAND FILE`: questions to a recording, answered on standard output.
#ifndef MUNINN_INSPECT_HEAP_HEAP_H
#define MUNINN_INSPECT_HEAP_HEAP_H

// The words behind `heap`. Returns the exit status: 1 if the user or the file is at fault.
int heap_main(int argc, char **argv);

#endif
