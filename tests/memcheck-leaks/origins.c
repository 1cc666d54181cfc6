// SPDX-License-Identifier: MIT
//
// Undefined values that travel: what each was made by.
// clang-format off
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/memcheck.h>
struct s { int a,b; }; extern volatile int sink;
__attribute__((noinline)) int ret_uninit(void){ int x; asm volatile("":"=m"(x)); return x; }
__attribute__((noinline)) void take(int v){ if(v) sink++; }
__attribute__((noinline)) void fill(struct s *p, int v){ p->a=v; }
int g[4]; volatile int sink;
int main(void){
 int *p=malloc(40); if(p[3]) sink++;
 take(p[4]);
 if(ret_uninit()) sink++;
 int *q=malloc(8); q[0]=p[5]; if(q[0]) sink++;         // heap to heap: origin p
 struct s st; fill(&st,p[6]); if(st.a) sink++;        // heap to stack
 if(st.b) sink++;                                      // stack
 int y=p[7]*3+1; g[1]=y; if(g[1]>7) sink++;            // to global
 VALGRIND_MAKE_MEM_UNDEFINED(g,16); if(g[2]) sink++;   // client
 char b[16]; memcpy(b,p,16); if(b[3]) sink++;
 write(1,p+1,4);
 printf("%d\n", g[1]&0);
 g[3]=((int*)g)[p[8]&1];
 return 0; }
