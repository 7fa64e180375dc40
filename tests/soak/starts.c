/* SPDX-License-Identifier: Apache-2.0 */
/* The same graph started again and again, or made again and again; several of them at once. */
#include "soak.h"

#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { ROWS = 64, EVERY = 16, MOST_THREADS = 16, PROCESSES = 2 };

/* ---- starts ---- */

typedef struct worker {
    const settings *s;
    pthread_t thread;
    adder adder;
    trend trend;
    bool fine, watches;
} worker;

static void *go(void *data)
{
    worker *w = data;
    double begin = seconds_now();
    for (uint64_t i = 0; i < w->s->count && w->fine; i++) {
        w->fine = adder_start(&w->adder);
        if (i % EVERY == 0) {
            still_moving("starts");
            double part = part_done(i, begin, w->s);
            if (w->watches)
                look_at(&w->trend, part, w->s);
            if (part >= 1)
                break;
        }
    }
    return NULL;
}

static uint64_t run_all(worker *w, int count)
{
    uint64_t starts = 0;
    for (int i = 1; i < count; i++)
        w[i].fine = w[i].fine && pthread_create(&w[i].thread, NULL, go, &w[i]) == 0;
    go(&w[0]);
    for (int i = 0; i < count; i++) {
        if (i > 0 && w[i].thread)
            pthread_join(w[i].thread, NULL);
        starts += w[i].adder.starts;
    }
    return starts;
}

int soak_starts(const settings *s)
{
    static worker w[MOST_THREADS];
    int threads = s->threads < MOST_THREADS ? s->threads : MOST_THREADS;
    uint64_t wrong = 0;
    bool fine = true;
    for (int i = 0; i < threads; i++) {
        w[i] = (worker){ .s = s, .watches = i == 0 };
        w[i].fine = adder_make(&w[i].adder, s, ROWS, s->devices);
    }
    double begin = seconds_now();
    uint64_t starts = run_all(w, threads);
    double took = seconds_now() - begin;
    for (int i = 0; i < threads; i++) {
        fine = fine && w[i].fine;
        wrong += w[i].adder.wrong;
    }
    printf("starts: %" PRIu64 " on %d devices (%s, replay %s), %d runs at once, %.1f s, %.2f us each, %" PRIu64
           " wrong\n",
           starts, s->devices, s->backend, s->replay ? s->replay : "auto", threads, took,
           starts ? took * 1e6 / (double)starts : 0, wrong);
    bool flat = threads > 1 || is_flat(&w[0].trend, s); /* threads end when they like */
    for (int i = 0; i < threads; i++)
        adder_free(&w[i].adder);
    return fine && !wrong && flat ? EXIT_SUCCESS : EXIT_WRONG;
}

/* ---- making anew ---- */

int soak_remake(const settings *s)
{
    trend t = { 0 };
    static adder kept, a; /* contexts of GPUs stay while a run is open: to make them takes much longer than all else */
    uint64_t done = 0, wrong = 0;
    double begin = seconds_now(), part;
    bool fine = adder_make(&kept, s, ROWS, s->devices);
    for (; fine && (part = part_done(done, begin, s)) < 1; done++) {
        int parts = 1 + (int)(done % 4);
        still_moving("remake");
        fine =
            adder_make(&a, s, parts + (int)(done * 11 % (MOST_ROWS - 4)), parts) && adder_start(&a) && adder_start(&a);
        wrong += a.wrong;
        adder_free(&a);
        look_at(&t, part, s);
    }
    double took = seconds_now() - begin;
    printf("remake: %" PRIu64 " graphs on %d devices (%s), two starts each, %.1f s, %.1f us each, %" PRIu64 " wrong\n",
           done, s->devices, s->backend, took, done ? took * 1e6 / (double)done : 0, wrong);
    bool flat = is_flat(&t, s);
    adder_free(&kept);
    return fine && !wrong && flat ? EXIT_SUCCESS : EXIT_WRONG;
}

/* ---- processes beside each other ---- */

/* This program again, with two runs at once. */
static bool spawn_starts(const settings *s, pid_t *child)
{
    char count[30], devices[20], seconds[30];
    snprintf(count, sizeof count, "%" PRIu64, s->count);
    snprintf(devices, sizeof devices, "%d", s->devices);
    snprintf(seconds, sizeof seconds, "%.3f", s->seconds);
    const char *words[] = { s->program,
                            "starts",
                            count,
                            "--backend",
                            s->backend,
                            "--devices",
                            devices,
                            "--seconds",
                            seconds,
                            "--threads",
                            "2",
                            "--shared",
                            s->replay ? "--replay" : NULL,
                            s->replay,
                            NULL };
    return posix_spawn(child, s->program, NULL, NULL, (char *const *)(uintptr_t)words, environ) == 0;
}

int soak_together(const settings *s)
{
    pid_t child[PROCESSES];
    int code = EXIT_SUCCESS;
    bool started[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        started[i] = spawn_starts(s, &child[i]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        if (!started[i] || waitpid(child[i], &status, 0) != child[i] || status != 0) {
            printf("process %d: status %x\n", i, (unsigned)status);
            code = EXIT_WRONG;
        }
    }
    printf("together: %d processes with 2 runs each on %d devices (%s): %s\n", PROCESSES, s->devices, s->backend,
           code ? "FAILED" : "all right");
    return code;
}
