# SPDX-License-Identifier: MIT
"""Tests of signals mean default actions; nohup and some CI systems start us with ignored ones."""
import signal


def restore():
    for sig in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # those subprocess restores
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
