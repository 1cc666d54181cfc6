#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A script started by its own name: the kernel's #! rule, and $0, belong to the launcher.
echo "$(basename "$0") with $# arguments: $*"
exit 21
