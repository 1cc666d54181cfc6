// SPDX-License-Identifier: MIT
#include "tools/memcheck/definedness_step.h"
void family_bits(Running *r)
{
    rule_coarse(r);
}
