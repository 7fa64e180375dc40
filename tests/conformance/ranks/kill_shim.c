/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills a rank at an op, once: loaded into each process (LD_PRELOAD) by kills.py, which says by the environment
 *   KILLS_RANK  which rank
 *   KILLS_AT    at which of the ops that it comes to, from 1; 0: at none
 *   KILLS_WHEN  before, after, or so many microseconds behind its beginning
 *   KILLS_MARK  a file: who is killed makes it before, so that only the first attempt has a loss; with KILLS_AT 0 the
 * ops of each rank are counted in MARK.RANK instead Ops begin in gy_host_ops_execute, those that cross in
 * gy_host_cross. A breakpoint is written over the endbr64 that such functions begin with, so that the handler has
 * nothing to carry out in its place but to step over it.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { BREAK = 0xcc, ENDBR64 = 4, PAGE = 4096 };

static atomic_long come;
static long at;
static const char *when, *mark;
static long *counted; /* of a shared page; NULL: not counted */

static void die(void)
{
    int fd = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0)
        return;
    kill(getpid(), SIGKILL);
}

/* SIGKILL by a timer: whatever the process is at. */
static void die_later(long us)
{
    const struct itimerspec then = { .it_value = { .tv_nsec = us * 1000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
    timer_t timer;
    int fd = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &then, NULL);
}

static void count(long mine)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    counted[0] = mine;
    if (mine == 1)
        counted[1] = now.tv_sec * 1000000000L + now.tv_nsec;
}

static void on_break(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number;
    (void)info;
    registers[REG_RIP] += ENDBR64 - 1;
    long mine = atomic_fetch_add(&come, 1) + 1;
    if (counted)
        count(mine);
    if (mine != at)
        return;
    if (strcmp(when, "before") == 0)
        die();
    else if (strcmp(when, "after") == 0)
        *(void **)(uintptr_t)registers[REG_RSP] = (void *)(uintptr_t)die;
    else
        die_later(strtol(when, NULL, 10));
}

static void put_break(unsigned char *code)
{
    static const unsigned char endbr64[ENDBR64] = { 0xf3, 0x0f, 0x1e, 0xfa };
    void *page = (void *)((uintptr_t)code / PAGE * PAGE);
    if (memcmp(code, endbr64, sizeof endbr64) != 0 ||
        mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        fprintf(stderr, "kill_shim: no breakpoint can be put\n");
        _exit(1);
    }
    *code = BREAK;
}

/* Threads of a run block all signals, and who blocks this one is killed by a breakpoint. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    int (*next)(int, const sigset_t *, sigset_t *) = NULL;
    sigset_t mine;
    void *found = dlsym(RTLD_NEXT, "pthread_sigmask");
    memcpy(&next, &found, sizeof next);
    if (set) {
        mine = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&mine, SIGTRAP);
    }
    return next(how, set ? &mine : NULL, old);
}

/* Functions that are not exported are in the table of symbols of the file alone. */
static int look_through(struct dl_phdr_info *object, size_t size, void *found)
{
    struct stat what;
    (void)size;
    int fd = strstr(object->dlpi_name, "/libgantry.so") ? open(object->dlpi_name, O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &what) != 0)
        return 0;
    const char *file = mmap(NULL, (size_t)what.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Shdr *section = (const void *)(file + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Sym *symbol = (const void *)(file + section[i].sh_offset);
        const char *names = section[i].sh_type == SHT_SYMTAB ? file + section[section[i].sh_link].sh_offset : NULL;
        for (size_t k = 0; names && k < section[i].sh_size / sizeof *symbol; k++) {
            const char *name = names + symbol[k].st_name;
            if (strcmp(name, "gy_host_ops_execute") != 0 && strcmp(name, "gy_host_cross") != 0)
                continue;
            put_break((unsigned char *)(uintptr_t)(object->dlpi_addr + symbol[k].st_value));
            ++*(int *)found;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *which = getenv("KILLS_RANK"),
               *guarded = getenv("GANTRY_GUARDED");
    const struct sigaction action = { .sa_sigaction = on_break, .sa_flags = SA_SIGINFO | SA_RESTART };
    int found = 0;
    rank = rank ? rank : getenv("PMI_RANK");
    when = getenv("KILLS_WHEN");
    mark = getenv("KILLS_MARK");
    at = getenv("KILLS_AT") ? strtol(getenv("KILLS_AT"), NULL, 10) : 0;
    if (!rank || !guarded || !mark || (at && (!when || !which || strcmp(rank, which) != 0 || access(mark, F_OK) == 0)))
        return;
    dl_iterate_phdr(look_through, &found);
    if (!found) /* a launcher, or a script of one */
        return;
    sigaction(SIGTRAP, &action, NULL);
    if (at)
        return;
    char path[PAGE];
    snprintf(path, sizeof path, "%s.%s", mark, rank);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd >= 0 && ftruncate(fd, PAGE) == 0)
        counted = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
