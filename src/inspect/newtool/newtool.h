// SPDX-License-Identifier: MIT
//
// `muninn new-tool NAME`: the skeleton of a tool, in a folder of its name.
#ifndef MUNINN_INSPECT_NEWTOOL_NEWTOOL_H
#define MUNINN_INSPECT_NEWTOOL_NEWTOOL_H

int newtool_main(int argc, char **argv); // the words behind the name

#endif
