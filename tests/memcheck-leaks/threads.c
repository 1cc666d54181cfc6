// SPDX-License-Identifier: MIT
//
// Threads that run, sleep and allocate while the heap is searched.
// clang-format off
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>
static __thread void *tls; static volatile int stop, ready;
static void *spin(void*a){ void *reg=malloc(111); tls=malloc(222); __atomic_add_fetch(&ready,1,5); unsigned long i=0; 
 for(;;){ asm volatile("" : "+r"(reg)); i++; if(stop) break; } return reg; }
static void *sleeper(void*a){ void *l=malloc(333); tls=malloc(444); __atomic_add_fetch(&ready,1,5); 
  sleep(100); asm volatile(""::"r"(l)); return l; }
static void *churn(void*a){ __atomic_add_fetch(&ready,1,5); for(;;){ void*p=malloc(50); ((char*)p)[3]=1; free(p);} }
int main(int c,char**v){ pthread_t t; pthread_create(&t,0,spin,0); pthread_create(&t,0,sleeper,0); if(c!=2) pthread_create(&t,0,churn,0);
 while(__atomic_load_n(&ready,5)<2+(c!=2)) usleep(1000); char *lost=malloc(7); lost=0; if(c>1) sleep(atoi(v[1])); return 0; }
