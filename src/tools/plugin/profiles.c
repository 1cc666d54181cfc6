// SPDX-License-Identifier: MIT
//
// Profiles of a loaded tool, told to the monitor.
#include <string.h>

#include "engine/relay/relay.h"
#include "tools/plugin/plugin_internal.h"

_Static_assert((int)MUNINN_PROFILES_MAX == (int)PROFILES_MAX, "the monitor has room for them");
_Static_assert((int)MUNINN_PROFILE_EVENTS_MAX == (int)PROFILE_EVENTS_MAX, "likewise");

static struct {
    char events[512];
    u32 event_count;
    bool is_open; // the monitor knows it
} profiles[PROFILES_MAX];
static u32 profile_count;

uint32_t muninn_profile(const char *events)
{
    plugin_needs_start("muninn_profile");
    if (profile_count == PROFILES_MAX)
        plugin_refuse("muninn_profile: no more than %d", PROFILES_MAX);
    u32 count = 0;
    for (const char *at = events; *at; at++)
        count += *at != ' ' && (at == events || at[-1] == ' ');
    if (count == 0 || count > PROFILE_EVENTS_MAX ||
        strlen(events) >= sizeof(profiles[0].events))
        plugin_refuse("muninn_profile: from 1 to %d events, by spaces", PROFILE_EVENTS_MAX);
    strcpy(profiles[profile_count].events, events);
    profiles[profile_count].event_count = count;
    plugin_tool.needs |= TOOL_NEEDS_MONITOR;
    return profile_count++;
}

static void open_profile(u32 profile)
{
    if (profile >= profile_count)
        plugin_refuse("there is no profile %u", profile);
    if (!profiles[profile].is_open)
        relay_profile(&thread_ctx, profile, profiles[profile].events);
    profiles[profile].is_open = true;
}

void muninn_profile_cost(uint32_t profile, MuninnAddress pc, const uint64_t *values)
{
    open_profile(profile);
    relay_profile_cost(&thread_ctx, profile, pc, values, profiles[profile].event_count);
}

void muninn_profile_done(uint32_t profile)
{
    open_profile(profile);
    relay_profile_done(&thread_ctx, profile);
    profiles[profile].is_open = false;
}
