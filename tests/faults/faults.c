/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails every call, one at a time: faults [--class CLASS] [--scenario NAME] ...
 *
 * Each call that fails has a process of its own, which does a scenario twice, first with the fault, then without one.
 * The first time has to succeed with the right result, or to return an error that says what happened; the second time
 * has to succeed. Files have their old contents or their new ones, nothing is left beside them, and no memory,
 * descriptor or thread is left that a process without a fault has not left.
 */
#include "material.h"
#include "report.h"
#include "scenarios.h"
#include "shim.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 64, SHOWN = 12 };

typedef struct choice {
    const char *scenario, *tree;
    char folder[200];
    shim_plan plan;
    bool classes[SHIM_COUNT], gpu;
    long first, last, stride, jobs;
    double limit, seconds; /* of a process; of a scenario, 0: none */
} choice;

typedef struct job {
    pid_t child; /* 0: none */
    double begun;
    report *told;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- processes ---- */

static const char *const class_names[] = {
#define SHIM_X(name, word) word,
    SHIM_CLASSES(SHIM_X)
#undef SHIM_X
};

static void start_job(job *j, const choice *c, const scenario *s, const report *reference, long at)
{
    memset(j->told, 0, sizeof *j->told);
    j->told->at = at;
    fflush(stdout);
    j->begun = now();
    j->child = fork();
    if (j->child)
        return;
    shim_plan plan = c->plan;
    plan.at = at;
    report_fill(j->told, s, &plan, reference, c->folder, c->tree);
    _exit(0);
}

/* True if the job has ended; it is ended if it takes too long. */
static bool end_job(job *j, const choice *c)
{
    int status = 0;
    bool late = now() - j->begun > c->limit;
    if (late) {
        kill(j->child, SIGKILL);
        j->told->hung = 1;
    }
    if (waitpid(j->child, &status, late ? 0 : WNOHANG) != j->child)
        return false;
    j->told->signal = WIFSIGNALED(status) && !late ? WTERMSIG(status) : 0;
    j->told->exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    report_clear(j->child, c->folder);
    j->child = 0;
    return true;
}

/* ---- one scenario and class ---- */

typedef struct tally {
    long calls, tried, failed, errors, wrong;
} tally;

static void judge(const report *r, const report *reference, const choice *c, const scenario *s, tally *t)
{
    char why[REPORT_TEXT];
    t->tried++;
    t->failed += r->failed[0] != '\0';
    t->errors += r->status[0] != GANTRY_OK;
    if (report_is_right(r, reference, &c->plan, why, sizeof why))
        return;
    if (++t->wrong <= SHOWN)
        printf("  %s, %s call %ld (%s): %s\n", s->name, class_names[c->plan.of], r->at,
               r->failed[0] ? r->failed : "none", why);
}

static long common_divisor(long a, long b)
{
    while (b > 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step by which each of `count` places is come to once, since it has no divisor in common with `count`. It is near
 * the golden section, so that the places that were come to are spread evenly at any moment. */
static long spread(long count)
{
    long step = (long)((double)count * 0.618) + 1;
    while (common_divisor(count, step) > 1)
        step++;
    return step;
}

/* Calls from all over the scenario, so that all its parts have been seen when the time is up. */
static void sweep(job *jobs, const choice *c, const scenario *s, const report *reference, tally *t)
{
    long last = c->last && c->last < t->calls ? c->last : t->calls, running = 0, begun = 0;
    long count = last < c->first ? 0 : (last - c->first) / c->stride + 1, step = count ? spread(count) : 0;
    double until = c->seconds > 0 ? now() + c->seconds : INFINITY;
    while (begun < count || running > 0) {
        count = now() > until ? 0 : count;
        for (long i = 0; i < c->jobs; i++) {
            if (!jobs[i].child && begun < count) {
                start_job(&jobs[i], c, s, reference, c->first + begun * step % count * c->stride);
                begun++;
                running++;
            } else if (jobs[i].child && end_job(&jobs[i], c)) {
                judge(jobs[i].told, reference, c, s, t);
                running--;
            }
        }
        usleep(200);
    }
}

/* Without a fault; what it gives is what all others are held against. False: there is nothing to hold. */
static bool find_reference(job *j, const choice *c, const scenario *s, report *reference)
{
    memset(reference, 0, sizeof *reference);
    for (int i = 0; i < 2; i++) { /* the second one knows which files there were */
        start_job(j, c, s, reference, 0);
        while (!end_job(j, c))
            usleep(200);
        *reference = *j->told;
        if (reference->signal || reference->hung || !reference->done)
            printf("  %s without a fault: signal %d%s\n", s->name, reference->signal, reference->hung ? ", hangs" : "");
        else if (reference->status[0])
            printf("  %s without a fault: %s\n", s->name, reference->text[0]);
        else
            continue;
        return false;
    }
    return true;
}

/* Returns how much was wrong. */
static long try_class(job *jobs, const choice *c, const scenario *s)
{
    static report reference;
    tally t = { 0 };
    bool known = find_reference(&jobs[0], c, s, &reference);
    t.calls = reference.calls;
    t.wrong = !known && !s->gpu;
    if (known)
        sweep(jobs, c, s, &reference, &t);
    printf("%s %s: %ld calls, %ld tried, %ld failed, %ld errors, %ld wrong%s\n", s->name, class_names[c->plan.of],
           t.calls, t.tried, t.failed, t.errors, t.wrong, known ? "" : " (not tried)");
    fflush(stdout);
    return t.wrong;
}

static bool is_wanted(const choice *c, const scenario *s)
{
    size_t length = c->scenario ? strlen(c->scenario) : 0;
    const char *at = c->scenario ? strstr(c->scenario, s->name) : NULL;
    for (; at; at = strstr(at + 1, s->name)) {
        char before = at == c->scenario ? ',' : at[-1], after = at[strlen(s->name)];
        if (before == ',' && (after == ',' || !after))
            return true;
    }
    return length == 0 && s->gpu == c->gpu;
}

static long try_all(job *jobs, choice *c)
{
    long wrong = 0;
    for (const scenario *s = scenarios; s->name; s++) {
        for (int i = 0; i < SHIM_COUNT && is_wanted(c, s); i++) {
            c->plan.of = (shim_class)i;
            if (c->classes[i] && (i != SHIM_DEVICE || s->gpu) && (i != SHIM_MEMORY || !s->detects))
                wrong += try_class(jobs, c, s);
        }
    }
    return wrong;
}

/* ---- words ---- */

static int usage(const char *name)
{
    fprintf(stderr,
            "usage: %s [--class memory|file|thread|map|device]... [--scenario A,B] [--gpu] [--way error|eintr|short]\n"
            "  [--from] [--code N] [--first N] [--last N] [--stride N] [--jobs N] [--limit SECONDS] [--seconds N] "
            "[--tree FOLDER]\n",
            name);
    return 2;
}

static bool take_class(choice *c, const char *word)
{
    for (int i = 0; i < SHIM_COUNT; i++) {
        if (strcmp(word, class_names[i]) == 0) {
            c->classes[i] = true;
            return true;
        }
    }
    return false;
}

static bool take_way(choice *c, const char *word)
{
    static const char *const words[] = { "error", "eintr", "short" };
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, words[i]) == 0) {
            c->plan.way = (shim_way)i;
            return true;
        }
    }
    return false;
}

static bool take_word(choice *c, int which, const char *word)
{
    long number = word ? strtol(word, NULL, 10) : 0;
    switch (which) {
    case 'c':
        return take_class(c, word);
    case 's':
        c->scenario = word;
        return true;
    case 'g':
        c->gpu = true;
        return true;
    case 'w':
        return take_way(c, word);
    case 'f':
        c->plan.lasting = true;
        return true;
    case 'e':
        c->plan.code = (int)number;
        return true;
    case 'a':
        c->first = number;
        return number > 0;
    case 'z':
        c->last = number;
        return number > 0;
    case 'n':
        c->stride = number;
        return number > 0;
    case 'j':
        c->jobs = number;
        return number > 0 && number <= MOST_JOBS;
    case 'l':
        c->limit = (double)number;
        return number > 0;
    case 'x':
        c->seconds = (double)number;
        return number > 0;
    case 't':
        c->tree = word;
        return true;
    default:
        return false;
    }
}

static bool take_words(choice *c, int argc, char **argv)
{
    static const struct option options[] = {
        { "class", 1, NULL, 'c' },   { "scenario", 1, NULL, 's' }, { "gpu", 0, NULL, 'g' },   { "way", 1, NULL, 'w' },
        { "from", 0, NULL, 'f' },    { "code", 1, NULL, 'e' },     { "first", 1, NULL, 'a' }, { "last", 1, NULL, 'z' },
        { "stride", 1, NULL, 'n' },  { "jobs", 1, NULL, 'j' },     { "limit", 1, NULL, 'l' }, { "tree", 1, NULL, 't' },
        { "seconds", 1, NULL, 'x' }, { NULL, 0, NULL, 0 },
    };
    int which;
    while ((which = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!take_word(c, which, optarg))
            return false;
    bool any = false;
    for (int i = 0; i < SHIM_COUNT; i++)
        any |= c->classes[i];
    for (int i = 0; i < SHIM_COUNT; i++)
        c->classes[i] |= !any;
    return optind == argc;
}

static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* In a process of its own: a driver that has been started does not survive a fork. */
static int count_gpus(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        gantry_machine *m = NULL;
        int gpus = 0;
        if (gantry_machine_detect(&m, NULL, NULL))
            _exit(0);
        for (size_t i = 0; i < gantry_machine_device_count(m); i++) {
            gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
            gpus += gantry_machine_device(m, i, &info, NULL) == GANTRY_OK && info.gpu;
        }
        _exit(gpus);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int main(int argc, char **argv)
{
    job jobs[MOST_JOBS] = { 0 };
    choice c = { .tree = GANTRY_SOURCE_DIR, .stride = 1, .first = 1, .limit = 30 };
    c.jobs = sysconf(_SC_NPROCESSORS_ONLN) < MOST_JOBS ? sysconf(_SC_NPROCESSORS_ONLN) : MOST_JOBS;
    if (!take_words(&c, argc, argv))
        return usage(argv[0]);
    const char *shared = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(c.folder, sizeof c.folder, "%s/gantry-faults-XXXXXX", shared);
    if (!mkdtemp(c.folder) || !material_write(c.folder, count_gpus())) {
        perror(c.folder);
        return 1;
    }
    for (long i = 0; i < c.jobs; i++)
        if (!(jobs[i].told = share(sizeof(report))))
            return 1;
    long wrong = try_all(jobs, &c);
    report_remove(c.folder);
    return wrong > 0;
}
