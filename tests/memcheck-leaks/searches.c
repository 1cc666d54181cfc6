// SPDX-License-Identifier: MIT
//
// Searches while the program runs, by requests and by commands.
// clang-format off
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/memcheck.h>
struct n { struct n *l,*r; };
struct n *t; char *inner; void *glob[4];
static struct n *mk(int d){ if(!d) return 0; struct n*x=malloc(sizeof *x); x->l=mk(d-1); x->r=mk(d-1); return x; }
__attribute__((noinline)) void clr(void){ volatile char b[4096]; memset((void*)b,0,sizeof b);} 
int main(void){
 t=mk(3); inner=(char*)malloc(50)+8; glob[0]=malloc(16); glob[1]=malloc(16); clr();
 VALGRIND_DO_LEAK_CHECK; fprintf(stderr,"--1\n");
 t=0; clr();
 VALGRIND_DO_ADDED_LEAK_CHECK; fprintf(stderr,"--2\n");
 VALGRIND_DO_QUICK_LEAK_CHECK; fprintf(stderr,"--3\n");
 free(glob[0]); glob[1]=malloc(4); clr();
 VALGRIND_DO_CHANGED_LEAK_CHECK; fprintf(stderr,"--4\n");
 unsigned long a,b,c,d,e; VALGRIND_COUNT_LEAKS(a,b,c,d); printf("%lu %lu %lu %lu\n",a,b,c,d);
 VALGRIND_COUNT_LEAK_BLOCKS(a,b,c,d); printf("%lu %lu %lu %lu\n",a,b,c,d);(void)e;
 char cmd[200];
 fprintf(stderr,"--any\n"); VALGRIND_MONITOR_COMMAND("leak_check full reachable any");
 fprintf(stderr,"--block\n"); VALGRIND_MONITOR_COMMAND("block_list 1..11");
 sprintf(cmd,"who_points_at %p 16",glob[1]); fprintf(stderr,"--who\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"who_points_at %p",glob[1]); fprintf(stderr,"--who\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"who_points_at %p 50",inner-8); fprintf(stderr,"--who\n");VALGRIND_MONITOR_COMMAND(cmd);
 char *s=malloc(10); s[1]=s[3]='a';
 sprintf(cmd,"xb %p 12",s); fprintf(stderr,"--xb\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"get_vbits %p 12",s); fprintf(stderr,"--gv\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"check_memory defined %p 10",s); fprintf(stderr,"--cm\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"check_memory addressable %p 12",s); fprintf(stderr,"--cm\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"check_memory addressable %p 10",s); fprintf(stderr,"--cm\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"make_memory defined %p 10",s); fprintf(stderr,"--mm\n");VALGRIND_MONITOR_COMMAND(cmd);
 sprintf(cmd,"check_memory defined %p 10",s); fprintf(stderr,"--cm\n");VALGRIND_MONITOR_COMMAND(cmd);
 VALGRIND_MONITOR_COMMAND("leak_check summary any");
 VALGRIND_MONITOR_COMMAND("block_list 77");
 free(s);
 return 0; }
