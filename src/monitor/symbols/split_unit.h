// SPDX-License-Identifier: MIT
//
// Split DWARF: the part of a unit that the linker did not copy, in a .dwo file or a
// .dwp package of many. Its sections are put together with the skeleton's addresses into
// an image of its own, in which libdw needs to know nothing of the split.
#ifndef MUNINN_MONITOR_SYMBOLS_SPLIT_UNIT_H
#define MUNINN_MONITOR_SYMBOLS_SPLIT_UNIT_H

#include <elfutils/libdw.h>

#include "monitor/symbols/section_image.h"

#define PACKAGE_SECTIONS 6

typedef struct SplitPackage { // PROGRAM.dwp
    bool is_tried;
    Elf *elf; // NULL: there is none
    int fd;
    PlainSection index;
    PlainSection sections[PACKAGE_SECTIONS];
    void *owned[PACKAGE_SECTIONS + 1];
    int strings_fd; // a memfd with .debug_str.dwo
    size_t strings_size;
} SplitPackage;

typedef struct SplitUnit {
    SectionImage image;
    Dwarf *dwarf; // NULL: the unit is not split, or its other part was not found
    u64 base_address; // of the skeleton: range lists count from it
    PlainSection pairs, lists, addresses; // .debug_ranges, .debug_rnglists, .debug_addr
} SplitUnit;

// True when the unit is a skeleton.
bool split_unit_is_skeleton(Dwarf_Die *unit);

// Finds the other part of a skeleton: in the package of the program, in the .dwo file it names,
// or beside the program. False: it is not there, or is of another build.
bool split_unit_open(SplitUnit *split, SplitPackage *package, Elf *program, const char *path,
                     Dwarf_Die *skeleton, Dwarf_Die *ret_tree);
void split_unit_close(SplitUnit *split);
void split_package_close(SplitPackage *package);

#endif
