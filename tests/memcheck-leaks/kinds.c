// SPDX-License-Identifier: MIT
//
// A block of each kind of loss, and a use of an undefined value.
// clang-format off
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
struct n { struct n *next; char pad[40]; };
void *keep; char *inner;
static struct n *mk(int n){ struct n *h=0; for(int i=0;i<n;i++){struct n*x=malloc(sizeof *x); x->next=h; h=x;} return h; }
int main(void){
 char *s = malloc(10); strcpy(s,"hi");
 keep = malloc(100); inner = (char*)malloc(50)+8;
 struct n *h = mk(3); h=0; (void)h; s=0;
 char *u=malloc(4); if(u[1]) puts("x");
 free(u);
 return 0; }
