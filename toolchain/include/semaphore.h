/* <semaphore.h> whose sem_t is aligned as strictly as any C library wants it: one works on it in units of 8 bytes. */
#ifndef __VIS_SEMAPHORE_H
#define __VIS_SEMAPHORE_H

#include <features.h>

#define __NEED_time_t
#define __NEED_struct_timespec
#include <bits/alltypes.h>
#include <fcntl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEM_FAILED ((sem_t *)0)

typedef struct {
    unsigned long __vis_words[4];
} sem_t;

int sem_init(sem_t *, int, unsigned int);
int sem_destroy(sem_t *);
sem_t *sem_open(const char *, int, ...);
int sem_close(sem_t *);
int sem_unlink(const char *);
int sem_wait(sem_t *);
int sem_trywait(sem_t *);
int sem_timedwait(sem_t *__restrict, const struct timespec *__restrict);
int sem_post(sem_t *);
int sem_getvalue(sem_t *__restrict, int *__restrict);

#ifdef __cplusplus
}
#endif
#endif
