// SPDX-License-Identifier: MIT
//
// The program behind the subcommands: `muninn ps` becomes muninn-inspect --subcommand=ps.
// It is one of its own because what looks at runs needs libraries (SQL, HTTP) that no
// monitor shall wait for when it starts.
#include <stdio.h>
#include <string.h>

#include "base/types.h"
#include "inspect/heap/heap.h"
#include "inspect/http/http.h"
#include "inspect/minmem/minmem.h"
#include "inspect/ms_print/ms_print.h"
#include "inspect/newtool/newtool.h"
#include "inspect/top/top.h"
#include "monitor/control/control.h"

// launch/options.def has their arguments and help.
static const struct {
    const char *name;
    int (*main)(int argc, char **argv); // the words behind the name
} subcommands[] = {
    {"ctl", control_ctl_main},
    {"heap", heap_main},
    {"minmem", minmem_main},
    {"ms_print", ms_print_main},
    {"new-tool", newtool_main},
    {"ps", control_ps_main},
    {"top", top_main},
    {"view", http_view_main},
};

int main(int argc, char **argv)
{
    static const char option[] = "--subcommand=";
    const char *name = argc > 1 ? argv[1] : "";

    if (strncmp(name, option, sizeof(option) - 1) != 0) {
        fprintf(stderr, "muninn-inspect is started by muninn, not by hand\n");
        return 1;
    }
    name += sizeof(option) - 1;
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++) {
        if (strcmp(name, subcommands[i].name) == 0)
            return subcommands[i].main(argc - 2, argv + 2);
    }
    fprintf(stderr, "muninn %s: there is no such subcommand\n", name);
    return 1;
}
