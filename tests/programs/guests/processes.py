# SPDX-License-Identifier: MIT
"""Python guest: fork, subprocess, threads, signals, mmap, sockets and ctypes callbacks (libffi)."""
import ctypes
import mmap
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import traceback


def show(*values):
    print(*values, flush=True)


def fork_and_exit():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, b"from the child")
        os._exit(7)
    os.close(writer)
    show("fork:", os.read(reader, 100), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def run_commands():
    done = subprocess.run(["tr", "a-z", "A-Z"], input=b"shout", stdout=subprocess.PIPE, check=True)
    show("subprocess:", done.stdout)
    killed = subprocess.run(["sh", "-c", "kill -TERM $$"], check=False)
    show("killed:", killed.returncode)
    many = [subprocess.Popen(["sh", "-c", f"exit {n}"]) for n in range(5)]
    show("many:", [child.wait() for child in many])
    try:
        subprocess.run(["/nonexistent/program"], check=True)
    except FileNotFoundError as error:
        show("missing:", error.strerror)


def run_threads():
    work, done, lock, total = queue.Queue(), queue.Queue(), threading.Lock(), [0]

    def worker():
        while (item := work.get()) is not None:
            with lock:
                total[0] += item
            done.put(item * item)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for item in range(200):
        work.put(item)
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join()
    show("threads:", total[0], sum(done.get() for _ in range(200)))


def square_in_pool(value):
    return value * value


def run_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        show("pool:", pool.map(square_in_pool, range(10)))


def call_back():
    libc = ctypes.CDLL(None)
    compare_type = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
    )
    calls = [0]

    def compare(left, right):
        calls[0] += 1
        return left[0] - right[0]

    values = (ctypes.c_int * 50)(*[(i * 37) % 101 for i in range(50)])
    libc.qsort(values, 50, ctypes.sizeof(ctypes.c_int), compare_type(compare))
    show("qsort:", list(values) == sorted(values), calls[0])
    mixed = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int, ctypes.c_float)
    show("closure:", mixed(lambda a, b, c: a * b + c)(1.5, 4, 0.25))
    for index in range(300):  # closures are made and freed: their code is written again and again
        if ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n, k=index: n + k)(1) != index + 1:
            show("closure went wrong at", index)


def take_signals():
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    signal.pause()
    show("signals:", seen.count(signal.SIGUSR1), seen[-1])
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.kill(os.getpid(), signal.SIGUSR2)
    show("sigwait:", signal.sigwait([signal.SIGUSR2]).name)


def share_memory():
    shared = mmap.mmap(-1, 4096)
    pid = os.fork()
    if pid == 0:
        shared[:5] = b"hello"
        os._exit(0)
    os.waitpid(pid, 0)
    show("mmap:", shared[:5])
    left, right = socket.socketpair()
    left.sendmsg([b"scatter ", b"gather"])
    show("socketpair:", right.recv(100))


def main():
    for step in (
        fork_and_exit,
        run_commands,
        run_threads,
        run_pool,
        call_back,
        take_signals,
        share_memory,
    ):
        step()
    try:
        {}["key"]
    except KeyError:
        traceback.print_exc()
    sys.setrecursionlimit(20000)
    show("deep:", (lambda f: f(f, 5000))(lambda f, n: 0 if n == 0 else 1 + f(f, n - 1)))
    sys.exit(3)


main()
