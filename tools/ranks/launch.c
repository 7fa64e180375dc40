/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gantry run --processes N: starts N ranks by mpirun, and, where --on-loss says so, starts anew on what is left when
 * one of them is lost, from the last checkpoint. MPI ends all ranks with one, so the launcher is what survives.
 */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of --mpirun; losses at one place after which it is no use; seconds for ranks to end after mpirun. */
enum { MOST_WORDS = 64, STUCK = 3, PATIENCE = 10 };
#define GRACE_US 3e6 /* for ranks to say that they were interrupted, and for mpirun to end where one is lost */

typedef struct attempt {
    const options *o;
    const char **word;
    size_t words;
    char count[24], kept[KEPT_ROOM];
    int64_t ranks;
    bool replans; /* for what a loss has left */
} attempt;

static const char *const hows[] = { "stop", "restart", "replan" };

static const char *how_of(const options *o)
{
    return o->on_loss ? o->on_loss : hows[0];
}

int check_launch(const options *o)
{
    const char *how = how_of(o);
    size_t i = 0, count = sizeof hows / sizeof *hows;
    char near[64];
    if (!o->ranks_wanted && (o->on_loss || o->mpirun)) {
        complain("gantry run: %s is for --processes N; add it\n", o->on_loss ? "--on-loss" : "--mpirun");
        return EXIT_USAGE;
    }
    while (i < count && strcmp(how, hows[i]) != 0)
        i++;
    if (i < count)
        return EXIT_FINE;
    complain("gantry run: --on-loss is \"%s\"; it takes stop, restart or replan%s\n", how,
             near_miss(near, sizeof near, how, hows, count));
    return EXIT_USAGE;
}

/* ---- checkpoints ---- */

/* The folder that attempts after the first go on from; NULL: none. */
static const char *folder_of(const options *o)
{
    const char *colon = o->checkpoint ? strchr(o->checkpoint, ':') : NULL;
    return colon ? colon + 1 : o->resume;
}

/* The number of the newest; 0: there is none. */
static long long newest(const char *folder)
{
    long long best = 0, number;
    DIR *all = folder ? opendir(folder) : NULL;
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (sscanf(entry->d_name, "checkpoint-%lld", &number) == 1 && number > best)
            best = number;
    if (all)
        closedir(all);
    return best;
}

/* ---- words ---- */

static bool add(attempt *a, const char *word)
{
    const char **grown = realloc((void *)a->word, (a->words + 2) * sizeof *grown);
    if (!grown)
        return false;
    a->word = grown;
    a->word[a->words++] = word;
    a->word[a->words] = NULL;
    return true;
}

/* True if the word, and *more behind it, are the launcher's, or are replaced by another --resume. */
static bool is_mine(const char *word, bool resumes, int *more)
{
    static const char *const names[] = { "--processes", "--on-loss", "--mpirun", "--resume" };
    for (size_t i = 0; i < sizeof names / sizeof *names - !resumes; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(word, names[i], length) == 0 && (word[length] == 0 || word[length] == '=')) {
            *more = word[length] == 0;
            return true;
        }
    }
    return false;
}

static bool add_own(attempt *a, const char *from)
{
    const options *o = a->o;
    bool fine = true;
    for (int i = 0; i < o->word_count && fine; i++) {
        int more = 0;
        if (is_mine(o->words[i], from != NULL, &more))
            i += more;
        else
            fine = add(a, o->words[i]);
    }
    return fine && (!from || (add(a, "--resume") && add(a, from)));
}

/* `launcher` is cut at its spaces. */
static bool make_words(attempt *a, char *launcher, const char *self, const char *from)
{
    bool fine = true;
    a->words = 0;
    snprintf(a->count, sizeof a->count, "%lld", (long long)a->ranks);
    char *rest = NULL;
    for (char *word = strtok_r(launcher, " ", &rest); word && fine && a->words < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest))
        fine = add(a, word);
    return fine && add(a, "-n") && add(a, a->count) && add(a, self) && add(a, a->o->train ? "train" : "run") &&
           add_own(a, from);
}

/* ---- one attempt ---- */

/* As many ranks as are asked for, on a computer of fewer cores, too: Open MPI refuses that ("not enough slots") unless
 * it is told. A launcher that --mpirun names has its own words for it, as it may know of several computers. */
static void allow_many(void)
{
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);                  /* up to Open MPI 4 */
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":OVERSUBSCRIBE", 0); /* from 5 on */
}

static void become(const attempt *a, pid_t launcher)
{
    char first[24];
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher)
        _exit(EXIT_LOST);
    setenv(GUARDED, "1", 1);
    /* Open MPI kills with pauses of so many seconds between signals, twice. Where a rank is lost nobody has to be
     * waited for, and where all are interrupted they are told otherwise (wait_for). */
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
    if (!a->o->mpirun)
        allow_many();
    if (*a->kept)
        setenv(KEPT, a->kept, 1);
    snprintf(first, sizeof first, "%lld", (long long)a->o->ranks_wanted);
    setenv(FIRST, first, 1);
    if (a->replans)
        setenv(LEFT, "1", 1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execvp(a->word[0], (char *const *)(uintptr_t)a->word);
    fprintf(stderr, "gantry run: cannot start %s: %s; name it with --mpirun\n", a->word[0], strerror(errno));
    _exit(EXIT_USAGE);
}

static void nap(void)
{
    const struct timespec nap = { .tv_nsec = 5000000 };
    nanosleep(&nap, NULL);
}

/* A first signal to this process is passed on: as SIGUSR1, which launchers hand to the guards of the ranks and do
 * nothing about themselves, so that ranks end by themselves and say so; if they do not, as it is. */
static void pass_signal(pid_t child, double *told, bool *passed)
{
    if (interrupt_code() && *told == 0) {
        kill(child, SIGUSR1);
        *told = now_us();
    } else if (*told > 0 && !*passed && now_us() - *told > GRACE_US) {
        kill(child, interrupt_code() - 128);
        *passed = true;
    }
}

/* A guard has said that its rank was killed. Where that was while MPI began, MPICH's mpirun waits on with the others:
 * it is told to end, then killed. */
static void end_stuck(const attempt *a, pid_t child, double *lost, int *signals)
{
    static const int sends[] = { SIGTERM, SIGKILL };
    if (*lost == 0 && has_loss(a->kept))
        *lost = now_us();
    if (*lost > 0 && *signals < 2 && now_us() - *lost > GRACE_US * (1 + *signals))
        kill(child, sends[(*signals)++]);
}

/* Waits for mpirun. It is asked for again and again, as handlers of signals here let calls go on. */
static int wait_for(const attempt *a, pid_t child)
{
    int status = 0, signals = 0;
    double told = 0, lost = 0;
    bool passed = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        pass_signal(child, &told, &passed);
        end_stuck(a, child, &lost, &signals);
        nap();
    }
    if (signals)
        return EXIT_LOST;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* mpirun may end before the ranks do, and theirs is the folder of checkpoints until then. Who has lost the parent is a
 * child of this process (launch). What an mpirun leaves for good, such as connections that ssh keeps, is not
 * waited for any longer than that; but where a rank is lost, others may wait for it for ever, and are killed. */
static void wait_for_rest(bool lost)
{
    const double begun = now_us(), until = begun + 1e6 * PATIENCE;
    pid_t ended = 1;
    while (ended >= 0 && now_us() < until) {
        ended = waitpid(-1, NULL, WNOHANG);
        if (ended == 0 && lost && now_us() - begun > GRACE_US)
            kill_ranks();
        if (ended == 0)
            nap();
    }
}

static int try_once(attempt *a, const char *from)
{
    char self[4096], *launcher = strdup(a->o->mpirun ? a->o->mpirun : "mpirun");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    int code = EXIT_RUNNING;
    if (!launcher || !make_words(a, launcher, length > 0 ? self : "gantry", from)) {
        code = fail_nomem();
    } else {
        const pid_t mine = getpid(), child = fork();
        if (child == 0)
            become(a, mine);
        if (child < 0)
            complain("gantry run: cannot start mpirun: %s\n", strerror(errno));
        else
            code = wait_for(a, child);
        if (code)
            wait_for_rest(has_loss(a->kept));
    }
    free(launcher);
    return code;
}

/* A rank was killed, or is silent, or has lost a device: codes of signals are those of mpirun, which differ. */
static bool is_loss(int code)
{
    return code >= EXIT_LOST && code != 128 + SIGINT && code != 128 + SIGTERM;
}

int launch(const options *o)
{
    attempt a = { .o = o, .ranks = o->ranks_wanted };
    const char *how = how_of(o), *folder = folder_of(o), *from = NULL;
    int code = EXIT_FINE, stuck = 0;
    long long at = newest(folder);
    interrupt_note(true);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* for wait_for_rest */
    kept_begin(a.kept);
    for (bool again = true; again;) {
        double begun = now_us();
        const time_t since = time(NULL);
        code = try_once(&a, from);
        if (code)
            remove_segments("/dev/shm", since);
        if (code && kept_loss(a.kept) && !interrupt_code())
            code = EXIT_LOST;
        again = is_loss(code) && !interrupt_code() && how != hows[0] && strcmp(how, hows[0]) != 0;
        long long now = newest(folder);
        stuck = now == at ? stuck + 1 : 0;
        at = now;
        a.replans = again && strcmp(how, "replan") == 0;
        a.ranks -= a.replans;
        if (!again || a.ranks < 1 || stuck >= STUCK)
            break;
        from = at ? folder : NULL;
        complain("gantry run: a rank was lost after %.1f s; beginning anew with %lld process%s%s%s\n",
                 (now_us() - begun) / 1e6, (long long)a.ranks, a.ranks == 1 ? "" : "es",
                 from ? ", from the last checkpoint in " : ", from the start", from ? from : "");
    }
    if (is_loss(code) && strcmp(how, hows[0]) != 0 && !interrupt_code())
        complain("gantry run: a rank was lost, and %s; look at what it said\n",
                 a.ranks < 1 ? "none is left" : "so it was at the last attempts, without a checkpoint between them");
    interrupt_note(false);
    kept_end(a.kept);
    free((void *)a.word);
    return interrupt_code() ? interrupt_code() : code;
}
