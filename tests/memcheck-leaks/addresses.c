// SPDX-License-Identifier: MIT
//
// What an address is, for every kind of memory.
// clang-format off
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <stdio.h>
#include <valgrind/memcheck.h>
#include <pthread.h>
#include <unistd.h>
static int initialised[4]={1,2,3,4}; static int zeroed[4]; int gz[100];
static void chk(const char*w, void *p){ fprintf(stderr,"-- %s\n",w); VALGRIND_MAKE_MEM_NOACCESS(p,1); VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p,1); VALGRIND_MAKE_MEM_DEFINED(p,1);} 
static void inner(char *b){ chk("outer frame",b); }
static void deep(char*b){ inner(b);} 
static void *thr(void*p){ volatile char c[8]; usleep(200000); chk("main's stack from thread",p); return 0; }
int main(int c, char **v){
 char buf[32]; chk("own", buf+3); deep(buf+4);
 chk("data",initialised+1); chk("bss",zeroed+1); chk("gz",gz+50);
 char *m=mmap(0,8192,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); chk("anon",m+10);
 FILE*f=fopen("/etc/passwd","r"); char *fm=mmap(0,4096,3,MAP_PRIVATE,fileno(f),0); chk("file",fm+10);
 chk("brk",sbrk(64)); chk("null",(void*)8); chk("argv",v[0]);
 char *h=malloc(8); free(h); chk("freed",h+2);
 pthread_t t; pthread_create(&t,0,thr,buf+5); pthread_join(t,0);
 chk("text",(void*)main); chk("environ", getenv("HOME"));
 chk("libc data", stdout);
 char *u=(char*)__builtin_frame_address(0)-4000; *(volatile char*)(u)=1;
 return 0;}
