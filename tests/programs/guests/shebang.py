#!/usr/bin/env -S python3 -I
# SPDX-License-Identifier: MIT
"""A script whose interpreter is found by env, with an option of its own."""
import os
import sys

print(os.path.basename(sys.argv[0]), sys.argv[1:], sys.flags.isolated)
