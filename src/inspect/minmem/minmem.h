// SPDX-License-Identifier: MIT
//
// `muninn minmem -- PROG ARGS`: how much memory does it need? The program is measured without
// a limit, then run again under falling limits until the smallest is known with which it still
// does the same.
//
//   guard ──fork──▶ worker ──fork──▶ the program, in a process group of its own, with a limit
//
// Files
//   minmem.c  options, the guard and the worker
//   measure.c runs without a limit
//   search.c  the bisection and the border
//   run.c     one run: its limit, its end, its verdict
//   group.c   a cgroup of version 2
//   leftover.c processes that a run leaves behind
//   profile.c one run under massif: what the memory is made of
//   report.c  the progress line, the text, the JSON
//
// What must stay true
//   M1  When it ends, however it ends, no process of a run and no cgroup is left: the worker
//       cleans up after every run, the guard after the worker. Only killing both with SIGKILL
//       at once leaves something.
//   M2  A limit is never called enough unless every run at it succeeded, nor too little unless
//       every run at it failed; what is between is told as uncertain.
#ifndef MUNINN_INSPECT_MINMEM_MINMEM_H
#define MUNINN_INSPECT_MINMEM_MINMEM_H

int minmem_main(int argc, char **argv);

#endif
