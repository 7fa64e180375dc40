/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A process that watches the one which works, where gantry run --processes started it: what a rank that is killed
 * cannot say any more, it says. Both look at a page that they share, on which the rank writes what it is at. When all
 * ranks have done all, heartbeats end, and some may be gone: a rank that is stopped then is seen by its guard alone,
 * which gives it as long to end as a silent rank has.
 */
#include "launch.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 300, HEARD_NS = 500000000, SILENT_S = 10, LATER_S = 2 };

static char *page; /* shared with the guard; NULL: there is none */
static volatile sig_atomic_t worker, passed_on, allowed, is_late;

/* SIGUSR1 is what gantry run --processes says where it was interrupted. */
static void hand_on(int n)
{
    passed_on = n == SIGUSR1 ? SIGTERM : n;
    if (worker)
        kill((pid_t)worker, passed_on);
}

/* The rank is about to end, if it is that one which says so: launchers pass on what others send them. */
static void count_down(int n, siginfo_t *from, void *context)
{
    (void)n;
    (void)context;
    if (worker && from->si_code == SI_USER && from->si_pid == (pid_t)worker)
        alarm((unsigned)allowed);
}

static void give_up(int n)
{
    (void)n;
    is_late = 1;
    kill((pid_t)worker, SIGKILL);
}

void guard_leave(void)
{
    if (page)
        kill(getppid(), SIGUSR2);
}

void guard_note(uint64_t starts, const gantry_run_progress *p)
{
    char iterations[60] = "";
    if (!page)
        return;
    if (p->most)
        snprintf(iterations, sizeof iterations, " and %llu iterations", (unsigned long long)p->iterations);
    snprintf(page, ROOM, "after %llu complete starts%s%s%.180s", (unsigned long long)starts, iterations,
             p->at ? ", at " : "", p->at ? p->at : "");
}

static const char *rank_text(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK");
    return rank ? rank : "0";
}

/* One write, so that lines of several ranks do not mix. */
static void say_killed(int n)
{
    char line[600], node[100] = "?";
    gethostname(node, sizeof node - 1);
    page[ROOM - 1] = 0;
    int length =
        is_late ? snprintf(line, sizeof line,
                           "gantry run: rank %s on node %s had not ended %d s after all had done all, so it was "
                           "killed, and all processes end; look for a process that is stopped\n",
                           rank_text(), node, (int)allowed)
                : snprintf(line, sizeof line,
                           "gantry run: rank %s on node %s was killed by signal %d (%s)%s%s, so all processes end\n",
                           rank_text(), node, n, strsignal(n), *page ? "; it was last seen " : "", page);
    (void)!write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static void watch(void)
{
    int status = 0;
    while (waitpid((pid_t)worker, &status, 0) < 0) {
    }
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    if (WTERMSIG(status) == passed_on)
        _exit(128 + passed_on);
    if (WTERMSIG(status) == SIGABRT) /* as libraries below MPI end where a peer is gone: its guard is to be heard */
        nanosleep(&(struct timespec){ .tv_nsec = HEARD_NS }, NULL);
    keep_loss();
    say_killed(WTERMSIG(status));
    gantry_network_flush();
    _exit(EXIT_LOST);
}

int guard_begin(double timeout)
{
    const char *wanted = getenv(GUARDED);
    if (!wanted || strcmp(wanted, "1") != 0)
        return EXIT_FINE;
    setenv(GUARDED, "0", 1);
    page = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return fail_nomem();
    signal(SIGUSR1, SIG_IGN); /* of the process that works: launchers give signals to both */
    const struct sigaction counts = { .sa_sigaction = count_down, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigaction(SIGUSR2, &counts, NULL);
    /* Others that are still there come first: they say the same of it, and they are more than one. */
    allowed = (timeout >= 1 && timeout < 1e6 ? (sig_atomic_t)timeout : SILENT_S) + LATER_S;
    const pid_t guard = getpid(), pid = fork();
    if (pid < 0) {
        complain("gantry run: cannot start the process of a rank; allow more processes (ulimit -u)\n");
        return EXIT_RUNNING;
    }
    if (pid > 0) {
        worker = (sig_atomic_t)pid;
        const struct sigaction action = { .sa_handler = hand_on };
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGUSR1, &action, NULL);
        signal(SIGALRM, give_up);
        watch();
    }
    signal(SIGUSR2, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) /* it was gone before that */
        _exit(EXIT_LOST);
    return EXIT_FINE;
}
