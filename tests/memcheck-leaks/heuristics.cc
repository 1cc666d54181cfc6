// SPDX-License-Identifier: MIT
//
// Pointers to the inside of a block that mean its start.
// clang-format off
#include <string>
#include <cstdlib>
#include <cstring>
#include <new>
struct A { virtual ~A(){} long a; }; struct B { virtual ~B(){} long b; }; struct C : A, B { long c; };
struct D { ~D(){} int x; };
B *mi; D *arr; char *l64; char *str;
__attribute__((noinline)) static void clear(){ volatile char b[4096]; memset((void*)b,0,sizeof b); }
__attribute__((noinline)) static void make(){
 mi = new C; arr = new D[5];
 char *p = (char*)malloc(8+32); *(unsigned long*)p = 32+8; l64 = p+8;
 // the layout of an old std::string: length, capacity, reference count, text
 long *s = (long*)malloc(24+101); s[0]=50; s[1]=100; s[2]=0; str=(char*)(s+3); memset(str,'x',50); str[50]=0;
}
int main(){ make(); clear(); return 0; }
