// SPDX-License-Identifier: MIT
//
// Compares sizes.def with the headers of the machine, where these have the struct and
// glibc's version of it does not hide the kernel's.
#include <linux/aio_abi.h>
#include <linux/fiemap.h>
#include <linux/futex.h>
#include <linux/hdreg.h>
#include <linux/if_arp.h>
#include <linux/io_uring.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <linux/quota.h>
#include <linux/sched.h>
#include <linux/serial.h>
#include <mqueue.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "engine/syscall/tables.h"
#include "unit.h"

typedef struct Size {
    const char *name;
    size_t ours;
    size_t theirs;
} Size;

#define SAME(name, type) { #name, SIZE_##name, sizeof(type) }
#define STRUCT(name) SAME(name, struct name)

static const Size sizes[] = {
    STRUCT(timespec), STRUCT(timeval), STRUCT(itimerval), STRUCT(itimerspec), STRUCT(timex),
    STRUCT(tms), STRUCT(stat), STRUCT(statfs), STRUCT(flock), STRUCT(f_owner_ex), STRUCT(pollfd),
    STRUCT(epoll_event), STRUCT(iovec), STRUCT(msghdr), STRUCT(mmsghdr), STRUCT(sockaddr_un),
    STRUCT(sockaddr_in), STRUCT(sockaddr_in6), SAME(siginfo, siginfo_t), STRUCT(sigevent),
    SAME(stack, stack_t), STRUCT(rusage), STRUCT(rlimit), STRUCT(utsname), STRUCT(sysinfo),
    STRUCT(sembuf), STRUCT(shmid_ds), STRUCT(shminfo), STRUCT(shm_info), STRUCT(semid_ds),
    STRUCT(seminfo), STRUCT(msqid_ds), STRUCT(msginfo), STRUCT(mq_attr), STRUCT(io_event),
    STRUCT(iocb), STRUCT(io_uring_params), STRUCT(io_uring_probe_op),
    STRUCT(io_uring_rsrc_update), STRUCT(clone_args), STRUCT(open_how), STRUCT(futex_waitv),
    STRUCT(winsize), STRUCT(serial_struct), STRUCT(arpreq), STRUCT(rtentry),
    SAME(dqblk, struct if_dqblk), SAME(dqinfo, struct if_dqinfo), STRUCT(loop_info),
    STRUCT(loop_info64), STRUCT(loop_config), STRUCT(hd_geometry), STRUCT(fiemap),
    STRUCT(fiemap_extent),
};

TEST(sizes_agree_with_the_headers)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        if (sizes[i].ours != sizes[i].theirs)
            FAIL("%s is %zu bytes, not %zu", sizes[i].name, sizes[i].theirs, sizes[i].ours);
    }
}
