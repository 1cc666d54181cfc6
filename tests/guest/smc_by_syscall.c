// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// The kernel is the one who writes the code: read, readv, recv, pread, getrandom's neighbour
// memcpy, process_vm_writev. No store of the program faults, yet old translations must go.
#include "smc.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

int main(void)
{
    uint8_t *page = map_pages(2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    int ends[2], sockets[2], fd = memfd_create("code", 0);
    CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    int wrong[6] = {0};
    for (int i = 0; i < 300; i++) {
        uint8_t code[8];
        put_return(code, i * 6);
        CHECK(write(ends[1], code, 6) == 6 && read(ends[0], page, 6) == 6);
        wrong[0] += call_code(page) != i * 6;

        put_return(code, i * 6 + 1);
        struct iovec parts[] = {{page, 2}, {page + 2, 4}};
        CHECK(write(ends[1], code, 6) == 6 && readv(ends[0], parts, 2) == 6);
        wrong[1] += call_code(page) != i * 6 + 1;

        put_return(code, i * 6 + 2);
        CHECK(send(sockets[1], code, 6, 0) == 6 && recv(sockets[0], page, 6, 0) == 6);
        wrong[2] += call_code(page) != i * 6 + 2;

        put_return(code, i * 6 + 3);
        CHECK(pwrite(fd, code, 6, 0) == 6 && pread(fd, page, 6, 0) == 6);
        wrong[3] += call_code(page) != i * 6 + 3;

        put_return(code, i * 6 + 4);
        struct iovec from = {code, 6}, to = {page, 6};
        CHECK(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 6);
        wrong[4] += call_code(page) != i * 6 + 4;

        put_return(page + PAGE, i * 6 + 5);
        memcpy(page, page + PAGE, 6);
        wrong[5] += call_code(page) != i * 6 + 5;
    }
    static const char *const names[] = {"read", "readv", "recv", "pread", "vm_writev", "memcpy"};
    for (int i = 0; i < 6; i++)
        say("%s: wrong %d\n", names[i], wrong[i]);
    return 0;
}
