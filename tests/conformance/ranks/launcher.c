/* SPDX-License-Identifier: Apache-2.0 */
/* How a process of a broken MPICH takes leave of its launcher, which is played by a thread here: in which MPI and under
 * which launcher it does, what it says, with answers in pieces and signals between, and that it does not call
 * MPI_Finalize when the launcher has heard a word. The module is taken as text, since none of this is its interface. */
#include "backends/mpi/mpi.c"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

typedef struct launcher {
    int fd;
    const char *answer[2]; /* NULL: it ends */
    char heard[2][64];
} launcher;

static void nap_us(long us)
{
    const struct timespec t = { .tv_nsec = us * 1000 };
    nanosleep(&t, NULL);
}

static void *play(void *context)
{
    launcher *l = context;
    for (int i = 0; i < 2; i++) {
        for (size_t got = 0; !strchr(l->heard[i], '\n');) {
            ssize_t n = read(l->fd, l->heard[i] + got, 1);
            if (n == 0)
                return NULL;
            got += n > 0 ? (size_t)n : 0;
        }
        nap_us(20000);
        for (const char *c = l->answer[i]; c && *c;)
            c += write(l->fd, c, 1) == 1;
        if (!l->answer[i])
            break;
    }
    close(l->fd);
    return NULL;
}

static bool leave(launcher *l, bool hydra)
{
    int pair[2], begun = socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    char text[16];
    pthread_t thread;
    sigset_t alarms, before;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, &before); /* they come to this thread, not to the launcher's */
    l->fd = pair[1];
    int failed = begun ? begun : pthread_create(&thread, NULL, play, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        exit(1);
    snprintf(text, sizeof text, "%d", pair[0]);
    setenv("PMI_FD", text, 1);
    if (hydra)
        setenv("HYDI_CONTROL_FD", "7", 1);
    else
        unsetenv("HYDI_CONTROL_FD");
    bool left = leave_by_launcher();
    close(pair[0]);
    pthread_join(thread, NULL);
    return left;
}

static void woken(int n)
{
    (void)n;
}

static int wrong;

static void expect(bool holds, const char *what)
{
    if (!holds)
        fprintf(stderr, "not so: %s\n", what);
    wrong += !holds;
}

static void expect_words(void)
{
    launcher fine = { .answer = { "cmd=barrier_out\n", "cmd=finalize_ack\n" } };
    expect(leave(&fine, true), "it leaves by Hydra");
    expect(strcmp(fine.heard[0], "cmd=barrier_in\n") == 0 && strcmp(fine.heard[1], "cmd=finalize\n") == 0,
           "it says both words, though signals come");
    launcher ends = { .answer = { NULL, NULL } }, other = { .answer = { "cmd=what\n", NULL } };
    expect(leave(&ends, true), "a launcher that ends has heard a word");
    expect(leave(&other, true) && !*other.heard[1], "one that says something else has, too, and hears no other");
    launcher none = { .answer = { NULL, NULL } };
    expect(!leave(&none, false) && !*none.heard[0], "another launcher hears nothing");
    setenv("HYDI_CONTROL_FD", "7", 1);
    setenv("PMI_FD", "9999", 1);
    expect(!leave_by_launcher(), "a line that is not open is none");
    setenv("PMI_FD", "6x", 1);
    expect(!leave_by_launcher(), "a word that is no number is none");
}

static void expect_versions(void)
{
#define TEXT(version, device, options)                                                                                 \
    "MPICH Version:\t" version "\nMPICH ABI:\t14:2:2\nMPICH Device:\t" device "\nMPICH configure:\t" options "\n"
    expect(is_finalize_broken(TEXT("4.0.2", "ch4:ucx", "--prefix=/usr")), "4.0 over UCX is broken");
    expect(is_finalize_broken(TEXT("3.4.3", "ch4:ucx", "--prefix=/usr")), "3.4 over UCX is");
    expect(!is_finalize_broken(TEXT("4.2.0", "ch4:ucx", "--prefix=/usr")), "4.2 is not");
    expect(!is_finalize_broken(TEXT("5.0.0", "ch4:ucx", "--prefix=/usr")), "5.0 is not");
    expect(!is_finalize_broken(TEXT("4.0.2", "ch4:ofi", "--with-device=ch4:ucx")), "over OFI none is");
    expect(!is_finalize_broken(TEXT("4.0.2", "ch3:nemesis", "")), "of ch3 none is");
    expect(!is_finalize_broken(TEXT("4.0.2", "ch4:ucx", "--with-pmi=pmi2")), "with PMI-2 none is left by PMI-1");
    expect(!is_finalize_broken("Open MPI v4.1.4, package: Debian OpenMPI"), "Open MPI is not");
}

int main(void)
{
    const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = woken }; /* calls do not go on by themselves */
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    expect_words();
    setitimer(ITIMER_REAL, &never, NULL);
    expect_versions();
    return wrong > 0;
}
