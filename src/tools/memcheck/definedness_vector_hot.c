// SPDX-License-Identifier: MIT
#include "tools/memcheck/definedness_step.h"
void family_vector(Running *r)
{
    rule_coarse(r);
}
