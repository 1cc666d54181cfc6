// SPDX-License-Identifier: MIT
//
// The client's table of signal actions and its mirror on the host (S1, S2).
// Threads share a table as CLONE_SIGHAND says; the host's actions are shared by
// the kernel along the same lines, so table and mirror never diverge.
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "engine/signal/signal_internal.h"

SignalActions process_actions = { .refs = 1 };

// What the kernel lets through; unknown bits are cleared, so that programs can probe for them.
#define CLIENT_FLAGS                                                                               \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER |             \
     (u64)SA_RESETHAND | KERNEL_SA_EXPOSE_TAGBITS | KERNEL_SA_RESTORER)

// Flags by which the kernel decides before our handler runs.
#define MIRRORED_FLAGS (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)

bool signal_reports_death;
bool signal_stress;

// A signal that kills by default: where the end must be reported, we catch it
// and die by it ourselves.
bool death_is_reported(int sig, const KernelAction *client)
{
    const u64 spared = MASK_IGNORED_BY_DEFAULT | MASK_STOPPING | MASK_UNBLOCKABLE;

    return signal_reports_death && client->handler == HANDLER_DFL && !(SIG_BIT(sig) & spared);
}

KernelAction action_for_host(int sig, const KernelAction *client)
{
    u64 mirrored = client->flags & MIRRORED_FLAGS;

    if (!action_is_handler(client)) {
        if (!signal_is_synchronous(sig) && !death_is_reported(sig, client))
            return (KernelAction){ .handler = client->handler, .flags = mirrored };
        // Sent by kill() and ignored, it must not disturb a system call.
        mirrored = SA_RESTART;
    }
    if (sig == WIRE_KICK_SIGNAL && signal_kicks)
        mirrored &= ~(u64)SA_RESTART; // sleep.c decides
    return (KernelAction){
        .handler = (u64)on_host_signal,
        .flags = mirrored | SA_SIGINFO | SA_ONSTACK | KERNEL_SA_RESTORER,
        .restorer = (u64)host_restorer,
        .mask = MASK_ALL,
    };
}

static void install(const SignalActions *actions, int sig)
{
    KernelAction host = action_for_host(sig, &actions->action[sig]);

    host_set_action(sig, &host);
}

void actions_init(void)
{
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (SIG_BIT(sig) & MASK_UNBLOCKABLE)
            continue;
        host_get_action(sig, &process_actions.action[sig]);
        // exec() leaves only SIG_DFL and SIG_IGN; a handler here is one of libc's own.
        bool handled = action_is_handler(&process_actions.action[sig]);
        if (handled)
            process_actions.action[sig] = (KernelAction){ .handler = HANDLER_DFL };
        if (handled || signal_is_synchronous(sig) ||
            death_is_reported(sig, &process_actions.action[sig]))
            install(&process_actions, sig);
    }
}

SignalActions *signal_actions_share(SignalActions *actions)
{
    __atomic_add_fetch(&actions->refs, 1, __ATOMIC_RELAXED);
    return actions;
}

SignalActions *signal_actions_copy(SignalActions *actions)
{
    SignalActions *copy = pages_map(sizeof(*copy));

    if (!copy)
        return NULL;
    lock_acquire(&actions->lock);
    memcpy(copy->action, actions->action, sizeof(copy->action));
    lock_release(&actions->lock);
    copy->refs = 1;
    return copy;
}

void signal_actions_release(SignalActions *actions)
{
    if (__atomic_sub_fetch(&actions->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (actions != &process_actions)
        pages_unmap(actions, sizeof(*actions));
}

void signal_actions_clear_handlers(SignalActions *actions)
{
    lock_acquire(&actions->lock);
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        if (!action_is_handler(&actions->action[sig]))
            continue;
        actions->action[sig] = (KernelAction){ .handler = HANDLER_DFL };
        install(actions, sig);
    }
    lock_release(&actions->lock);
}

void signal_actions_lock(SignalActions *actions)
{
    lock_acquire(&actions->lock);
}

void signal_actions_unlock(SignalActions *actions)
{
    lock_release(&actions->lock);
}

void signal_actions_reset_lock(SignalActions *actions)
{
    lock_reset_after_fork(&actions->lock);
    actions->refs = 1;
}

void signal_actions_reinstall(SignalActions *actions, int sig)
{
    lock_acquire(&actions->lock);
    install(actions, sig);
    lock_release(&actions->lock);
}

KernelAction actions_take(SignalActions *actions, int sig)
{
    lock_acquire(&actions->lock);
    KernelAction taken = actions->action[sig];
    if (action_is_handler(&taken) && (taken.flags & (u64)SA_RESETHAND)) {
        actions->action[sig].handler = HANDLER_DFL;
        install(actions, sig);
    }
    lock_release(&actions->lock);
    return taken;
}

i64 actions_change(SignalActions *actions, int sig, const KernelAction *act, KernelAction *ret_old)
{
    if (sig < 1 || sig > SIGNAL_COUNT || (act && (SIG_BIT(sig) & MASK_UNBLOCKABLE)))
        return -EINVAL;

    lock_acquire(&actions->lock);
    KernelAction old = actions->action[sig];
    if (act) {
        actions->action[sig] = *act;
        actions->action[sig].flags &= CLIENT_FLAGS;
        actions->action[sig].mask &= ~MASK_UNBLOCKABLE;
        install(actions, sig);
    }
    lock_release(&actions->lock);
    *ret_old = old;
    return 0;
}
