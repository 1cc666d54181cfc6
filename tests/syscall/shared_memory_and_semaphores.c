// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread -lrt
//
// System V and POSIX shared memory, semaphores and message queues between processes; shmat honours
// a hint, and attaching over a map needs SHM_REMAP.
#include "guest.h"
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static void system_v(void)
{
    int shm = shmget(IPC_PRIVATE, 65536, IPC_CREAT | 0600);
    int sem = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);
    int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    CHECK(shm >= 0 && sem >= 0 && queue >= 0);
    int *memory = shmat(shm, NULL, 0);
    char *hint = (char *)0x63000000000;
    say("hint honoured %d\n", shmat(shm, hint, 0) == hint);
    SHOW(shmat(shm, hint, 0));
    say("remap %d\n", shmat(shm, hint, SHM_REMAP) == hint);
    pid_t child = fork();
    if (child == 0) {
        struct sembuf take = {0, -1, 0};
        CHECK(semop(sem, &take, 1) == 0);
        memory[100] += 1;
        struct {
            long type;
            char text[20];
        } message = {7, "by message queue"};
        CHECK(msgsnd(queue, &message, sizeof message.text, 0) == 0);
        _exit(0);
    }
    memory[100] = 41;
    struct sembuf give = {0, 1, 0};
    SHOW(semop(sem, &give, 1));
    struct {
        long type;
        char text[64];
    } message;
    SHOW(msgrcv(queue, &message, sizeof message.text, 0, 0));
    wait_and_show("child", child);
    say("%d, %s, through the hint %d\n", memory[100], message.text, ((int *)hint)[100]);
    struct shmid_ds state;
    SHOW(shmctl(shm, IPC_STAT, &state));
    say("attached %lu size %zu\n", (unsigned long)state.shm_nattch, state.shm_segsz);
    SHOW(semctl(sem, 1, SETVAL, 9));
    SHOW(semctl(sem, 1, GETVAL));
    struct sembuf without_wait = {0, -1, IPC_NOWAIT};
    SHOW(semop(sem, &without_wait, 1));
    struct timespec moment = {0, 1000000};
    struct sembuf wait_for = {0, -1, 0};
    SHOW(semtimedop(sem, &wait_for, 1, &moment));
    SHOW(shmdt(memory));
    SHOW(shmdt(memory));
    shmctl(shm, IPC_RMID, NULL);
    semctl(sem, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    SHOW(semop(sem, &give, 1));
}

static void posix(void)
{
    char name[64];
    snprintf(name, sizeof name, "/guest-%d", getpid());
    int fd = shm_open(name, O_CREAT | O_RDWR | O_EXCL, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    int *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    CHECK(semaphore != SEM_FAILED);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++) {
            memory[0] += i;
            sem_post(semaphore);
        }
        _exit(0);
    }
    for (int i = 0; i < 100; i++)
        sem_wait(semaphore);
    say("sum %d\n", memory[0]);
    wait_and_show("child", child);
    sem_close(semaphore);
    sem_unlink(name);
    shm_unlink(name);
    SHOW(shm_open(name, O_RDWR, 0));

    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 32};
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, &attributes);
    if (queue == (mqd_t)-1) {
        say("no message queues: %s\n", error_name(errno));
        return;
    }
    char text[32];
    unsigned priority = 0;
    SHOW(mq_send(queue, "low", 4, 1));
    SHOW(mq_send(queue, "high", 5, 9));
    SHOW(mq_receive(queue, text, sizeof text, &priority));
    say("%s %u\n", text, priority);
    mq_close(queue);
    mq_unlink(name);
}

int main(void)
{
    system_v();
    posix();
    return 0;
}
