// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// memfd with seals, pipes with splice, tee and vmsplice, sendfile, copy_file_range, fallocate,
// holes, file locks and preadv2.
#include "guest.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

int main(void)
{
    char buffer[64] = "";
    int from = memfd_create("from", MFD_ALLOW_SEALING), to = memfd_create("to", 0);
    int ends[2], more[2];
    CHECK(write(from, "The quick brown fox\n", 20) == 20);
    CHECK(pipe(ends) == 0 && pipe2(more, O_NONBLOCK) == 0);
    loff_t offset = 4;
    SHOW(splice(from, &offset, ends[1], NULL, 5, 0));
    say("offset %ld\n", (long)offset);
    SHOW(tee(ends[0], more[1], 100, 0));
    SHOW(splice(ends[0], NULL, to, NULL, 100, 0));
    SHOW(read(more[0], buffer, sizeof buffer));
    say("%s\n", buffer);
    SHOW(read(more[0], buffer, sizeof buffer));
    struct iovec part = {"vmspliced", 9};
    SHOW(vmsplice(ends[1], &part, 1, 0));
    memset(buffer, 0, sizeof buffer);
    SHOW(read(ends[0], buffer, sizeof buffer));
    say("%s\n", buffer);

    off_t position = 10;
    SHOW(sendfile(to, from, &position, 100));
    say("position %ld\n", (long)position);
    loff_t in = 0, out = 30;
    SHOW(copy_file_range(from, &in, to, &out, 9, 0));
    say("in %ld out %ld size %ld\n", (long)in, (long)out, (long)lseek(to, 0, SEEK_END));
    memset(buffer, 0, sizeof buffer);
    SHOW(pread(to, buffer, 39, 0));
    for (int i = 0; i < 39; i++)
        say("%c", buffer[i] ? buffer[i] : '.');
    say("\n");

    SHOW(fcntl(from, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK));
    SHOW(write(from, "x", 1));
    SHOW(ftruncate(from, 1));
    SHOW(fcntl(from, F_GET_SEALS));
    SHOW(fcntl(to, F_ADD_SEALS, F_SEAL_WRITE));
    SHOW(fallocate(to, 0, 0, 8192));
    SHOW(fallocate(to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    SHOW(lseek(to, 0, SEEK_DATA));
    struct iovec into = {buffer, 10};
    SHOW(preadv(to, &into, 1, 8190));
    SHOW(preadv2(to, &into, 1, 0, RWF_NOWAIT) != -2);

    char name[] = "locked.XXXXXX";
    int file = mkstemp(name);
    SHOW(flock(file, LOCK_EX));
    int again = open(name, O_RDWR);
    SHOW(flock(again, LOCK_EX | LOCK_NB));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    SHOW(fcntl(file, F_SETLK, &lock));
    pid_t child = fork();
    if (child == 0) {
        SHOW(fcntl(again, F_SETLK, &lock));
        fcntl(again, F_GETLK, &lock);
        say("held by the parent %d\n", lock.l_pid == getppid());
        _exit(0);
    }
    wait_and_show("child", child);
    unlink(name);
    SHOW(fcntl(ends[0], F_SETPIPE_SZ, 65536));
    SHOW(fcntl(ends[0], F_GETPIPE_SZ));
    return 0;
}
