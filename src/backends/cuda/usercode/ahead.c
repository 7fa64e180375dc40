/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC takes 0.1 to 1 s for a kernel, and a graph has ten or twenty: all that are missing in the cache are compiled
 * into it by several threads. What they find wrong is met again by who opens the kernels one after another.
 */
#include "backends/cuda/usercode/usercode.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include <stdatomic.h>

enum { MOST_THREADS = 16 }; /* each has a compiler's memory */

typedef struct piece {
    const gy_kernel *kernel;
    int capability;
} piece;

typedef struct work {
    gy_nvrtc nvrtc;
    GY_VEC(piece) pieces;
    const char *folder;
    atomic_size_t next;
} work;

static bool is_known(const work *w, piece p)
{
    bool known = false;
    for (size_t i = 0; i < w->pieces.count && !known; i++)
        known = w->pieces.at[i].kernel == p.kernel && w->pieces.at[i].capability == p.capability;
    return known;
}

/* False: it is kept, or nothing can be done ahead, as of a file that the graph may not name. */
static bool is_missing(const work *w, piece p)
{
    const gy_kernel_code *from = p.kernel->code;
    if (from->cuda && gy_file_look(from->cuda, from->folder, NULL))
        return false;
    gy_nvrtc looking = w->nvrtc;
    gy_code code = { 0 };
    looking.looks_only = true;
    bool fine = gy_user_kernel_compile(&code, &looking, p.kernel, p.capability, w->folder, NULL) == GANTRY_OK;
    bool missing = fine && !code.at;
    gy_free(code.at);
    return missing;
}

static void collect(work *w, const gy_user_wants *wants, const gy_driver *driver, gy_said said)
{
    for (size_t i = 0; i < wants->count; i++) {
        piece p = { .kernel = wants->at[i].kernel };
        if (!gy_user_kernel_is_source(p.kernel) || (said.hear && !p.kernel->program) ||
            gy_driver_capability(driver, wants->at[i].device, &p.capability, NULL) || is_known(w, p))
            continue;
        if (!gy_vec_push(&w->pieces, p))
            return;
    }
    size_t missing = 0;
    for (size_t i = 0; i < w->pieces.count; i++)
        if (is_missing(w, w->pieces.at[i]))
            w->pieces.at[missing++] = w->pieces.at[i];
    w->pieces.count = missing;
}

static void *compile_some(void *data)
{
    work *w = data;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->pieces.count;) {
        const piece *p = &w->pieces.at[i];
        gy_code code = { 0 };
        gy_user_kernel_compile(&code, &w->nvrtc, p->kernel, p->capability, w->folder, NULL);
        gy_free(code.at);
    }
    return NULL;
}

/* This thread is one of them. */
static void compile_all(work *w, size_t threads)
{
    pthread_t thread[MOST_THREADS];
    size_t begun = 1;
    while (begun < threads && gy_thread_create(&thread[begun], compile_some, w) == 0)
        begun++;
    if (begun > 1)
        compile_some(w);
    for (size_t i = 1; i < begun; i++)
        pthread_join(thread[i], NULL);
}

void gy_user_kernels_compile(const gy_user_wants *wants, const gy_driver *driver, const char *folder, gy_said said)
{
    work w = { .folder = folder };
    size_t threads = gy_thread_processors();
    if (wants->count < 2 || threads < 2 || gy_nvrtc_find(&w.nvrtc, NULL))
        return;
    collect(&w, wants, driver, said);
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    threads = threads < w.pieces.count ? threads : w.pieces.count;
    if (threads > 1 && (gy_nvrtc_is_open(&w.nvrtc) || gy_nvrtc_open(&w.nvrtc, NULL) == GANTRY_OK))
        compile_all(&w, threads);
    gy_vec_free(&w.pieces);
}
