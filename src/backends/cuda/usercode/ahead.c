/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC takes 0.1 to 1 s for a kernel, and a graph has ten or twenty: all that are missing in the cache are compiled
 * into it by several threads, while contexts are opened. What they find wrong is met again by who opens the kernels one
 * after another.
 */
#include "backends/cuda/usercode/usercode.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "maths/maths.h"
#include <stdatomic.h>
#include <string.h>

enum { MOST_THREADS = 16 }; /* each has a compiler's memory */

typedef struct piece {
    const gy_kernel *kernel;
    int capability;
    bool ends; /* its second function, which is compiled apart */
} piece;

struct gy_user_ahead {
    gy_nvrtc nvrtc;
    GY_VEC(piece) pieces;
    const char *folder;
    atomic_size_t next;
    size_t threads;
    pthread_t lead;
};
typedef struct gy_user_ahead work;

/* ---- what is missing ---- */

/* Of formulas their name is made, also in graphs of other phases; and a file may have several kernels. NULL: a text. */
static const char *key_of(const gy_kernel *kernel)
{
    return kernel->program ? kernel->manifest->name : kernel->code->cuda;
}

static bool is_same(const gy_kernel *a, const gy_kernel *b)
{
    return a == b || (key_of(a) && key_of(b) && strcmp(key_of(a), key_of(b)) == 0);
}

static bool is_known(const work *w, const piece *p)
{
    bool known = false;
    for (size_t i = 0; i < w->pieces.count && !known; i++)
        known = is_same(w->pieces.at[i].kernel, p->kernel) && w->pieces.at[i].capability == p->capability;
    return known;
}

/* False: it is kept, or nothing can be done ahead, as of a file that the graph may not name. */
static bool is_missing(const work *w, const piece *p)
{
    const gy_kernel_code *from = p->kernel->code;
    if (from->cuda && gy_file_look(from->cuda, from->folder, NULL))
        return false;
    gy_nvrtc looking = w->nvrtc;
    gy_code code = { 0 };
    looking.looks_only = true;
    bool fine =
        gy_user_kernel_compile(&code, &looking, p->kernel, p->ends, p->capability, w->folder, NULL) == GANTRY_OK;
    bool missing = fine && !code.at;
    gy_free(code.at);
    return missing;
}

static bool add_wanted(work *w, const gy_user_wanted *wanted, const gy_driver *driver, gy_said said)
{
    piece p = { .kernel = wanted->kernel };
    if (!gy_user_kernel_is_source(p.kernel) || (said.hear && !p.kernel->program) ||
        gy_driver_capability(driver, wanted->device, &p.capability, NULL) || is_known(w, &p))
        return true;
    if (!gy_vec_push(&w->pieces, p))
        return false;
    p.ends = true;
    return !gy_user_kernel_is_apart(p.kernel) || gy_vec_push(&w->pieces, p);
}

/* Reductions take several times as long as maps: those that end last begin first. */
static bool takes_long(const piece *p)
{
    return p->kernel->program && p->kernel->program->maths->reduces;
}

/* Swaps do no harm to the order, which means nothing. */
static void put_long_first(work *w)
{
    size_t next = 0;
    for (size_t i = 0; i < w->pieces.count; i++) {
        piece p = w->pieces.at[i];
        if (!takes_long(&p))
            continue;
        w->pieces.at[i] = w->pieces.at[next];
        w->pieces.at[next++] = p;
    }
}

static void collect(work *w, const gy_user_wants *wants, const gy_driver *driver, gy_said said)
{
    for (size_t i = 0; i < wants->count; i++)
        if (!add_wanted(w, &wants->at[i], driver, said))
            return;
    size_t missing = 0;
    for (size_t i = 0; i < w->pieces.count; i++)
        if (is_missing(w, &w->pieces.at[i]))
            w->pieces.at[missing++] = w->pieces.at[i];
    w->pieces.count = missing;
    put_long_first(w);
}

/* ---- compiling it ---- */

static void *compile_some(void *data)
{
    work *w = data;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->pieces.count;) {
        const piece *p = &w->pieces.at[i];
        gy_code code = { 0 };
        gy_user_kernel_compile(&code, &w->nvrtc, p->kernel, p->ends, p->capability, w->folder, NULL);
        gy_free(code.at);
    }
    return NULL;
}

/* This thread is one of them. */
static void *compile_all(void *data)
{
    work *w = data;
    pthread_t thread[MOST_THREADS];
    size_t begun = 1;
    if (!gy_nvrtc_is_open(&w->nvrtc) && gy_nvrtc_open(&w->nvrtc, NULL) != GANTRY_OK)
        return NULL;
    while (begun < w->threads && gy_thread_create(&thread[begun], compile_some, w) == 0)
        begun++;
    compile_some(w);
    for (size_t i = 1; i < begun; i++)
        pthread_join(thread[i], NULL);
    return NULL;
}

static void free_work(work *w)
{
    gy_vec_free(&w->pieces);
    gy_free(w);
}

struct gy_user_ahead *gy_user_kernels_begin(const gy_user_wants *wants, const gy_driver *driver, const char *folder,
                                            gy_said said)
{
    size_t threads = gy_thread_processors();
    if (wants->count == 0 || threads < 2)
        return NULL;
    work *w = gy_calloc(1, sizeof *w);
    if (!w || gy_nvrtc_find(&w->nvrtc, NULL)) {
        gy_free(w);
        return NULL;
    }
    w->folder = folder;
    collect(w, wants, driver, said);
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    w->threads = threads < w->pieces.count ? threads : w->pieces.count;
    if (w->threads > 0 && gy_thread_create(&w->lead, compile_all, w) == 0)
        return w;
    free_work(w);
    return NULL;
}

void gy_user_kernels_end(struct gy_user_ahead *w)
{
    if (!w)
        return;
    pthread_join(w->lead, NULL);
    free_work(w);
}
