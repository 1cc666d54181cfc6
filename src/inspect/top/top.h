// SPDX-License-Identifier: MIT
//
// `muninn top PID`: what a program that runs under massif holds, who allocated it, what grows and
// what is allocated only to be freed at once; live on a terminal, or as text or JSON for scripts.
//
//   monitor ── heap_top (JSON) ──▶ sample.c ──▶ view.c (lines) ──▶ top.c ──▶ terminal.c, stdout
//
// The program does not notice: only its monitor is asked.
#ifndef MUNINN_INSPECT_TOP_TOP_H
#define MUNINN_INSPECT_TOP_TOP_H

int top_main(int argc, char **argv);

#endif
