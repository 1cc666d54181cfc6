// SPDX-License-Identifier: MIT
//
// The ways in which a heap looks at the end: empty, reachable, lost, aborted.
// clang-format off
#include <stdlib.h>
#include <stdio.h>
int main(int c,char**v){ printf("x\n"); void*p=malloc(3); if(c<2) free(p); else if(c==2) {static void*k; k=p;} else if (c==3){p=0;abort();} else {printf("%p\n",p=0);} return 0;}
