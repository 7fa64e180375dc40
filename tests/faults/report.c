/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "../support/entries.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char old[] = "what was there before\n";

/* ---- what is left ---- */

/* A thread that has been joined may be seen for a moment. */
static long count_tasks(long wanted)
{
    long count = count_entries("/proc/self/task");
    for (int i = 0; i < 100 && count > wanted; i++) {
        usleep(1000);
        count = count_entries("/proc/self/task");
    }
    return count;
}

static uint64_t hash_of(const char *path)
{
    attempt a = { 0 };
    char block[4096];
    FILE *f = fopen(path, "r");
    size_t got;
    while (f && (got = fread(block, 1, sizeof block, f)) > 0)
        digest_bytes(&a, block, got);
    if (f)
        fclose(f);
    return a.digest;
}

static void note_strange(char strange[REPORT_TEXT / 4], const char *name)
{
    size_t length = strlen(strange);
    snprintf(strange + length, REPORT_TEXT / 4 - length, " %s", name);
}

/* The files of a folder; without a reference they are all as they should be. */
static void look_at_files(report *r, int which, const report *reference, const char *folder)
{
    DIR *d = opendir(folder);
    int count = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        bool expected = e->d_name[0] == '.' || !reference->done;
        for (int i = 0; i < REPORT_FILES; i++)
            expected |= strcmp(e->d_name, reference->file[1][i].name) == 0;
        if (!expected)
            note_strange(r->strange[which], e->d_name);
        if (e->d_name[0] == '.' || !expected || count == REPORT_FILES)
            continue;
        report_file *f = &r->file[which][count++];
        snprintf(f->name, sizeof f->name, "%.*s", REPORT_NAME - 1, e->d_name);
        f->hash = hash_of(path_in(folder, e->d_name));
    }
    if (d)
        closedir(d);
}

/* In the cache of compiled code nothing but whole entries stays. A folder that could not be removed, because just that
 * failed, is removed by whoever compiles next: so the entries go, and the second attempt compiles again. */
static void look_at_cache(report *r, int which, const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        bool temporary = strstr(e->d_name, ".tmp") != NULL;
        if (temporary && (which == 1 || r->status[0]))
            note_strange(r->strange[which], e->d_name);
        if (!temporary)
            unlink(path_in(folder, e->d_name));
    }
    if (d)
        closedir(d);
}

static void put_old_files(const report *reference, const char *folder)
{
    for (int i = 0; i < REPORT_FILES && reference->file[1][i].name[0]; i++) {
        FILE *f = fopen(path_in(folder, reference->file[1][i].name), "w");
        if (f) {
            fputs(old, f);
            fclose(f);
        }
    }
}

/* ---- the two attempts ---- */

typedef struct place {
    char here[SCENARIO_PATH / 2], out[SCENARIO_PATH / 2], cache[SCENARIO_PATH / 2];
} place;

static void make_place(place *p, const char *folder)
{
    snprintf(p->here, sizeof p->here, "%.200s/%ld", folder, (long)getpid());
    snprintf(p->out, sizeof p->out, "%.250s/out", p->here);
    snprintf(p->cache, sizeof p->cache, "%.250s/gantry", p->here);
    mkdir(p->here, 0700);
    mkdir(p->out, 0700);
    setenv("XDG_CACHE_HOME", p->here, 1);
}

static void carry_out(report *r, int which, const scenario *s, const shim_plan *plan, attempt *a)
{
    r->attempts = which + 1;
    shim_begin(plan);
    r->status[which] = s->carry_out(a);
    long calls = shim_end();
    if (which == 0) {
        r->calls = calls;
        r->native = a->err.native;
    }
    r->digest[which] = a->digest;
    gantry_error_format(r->status[which] ? &a->err : NULL, r->text[which], sizeof r->text[which]);
}

/* The module would else be gone when the callers of what is left are named. */
static void stay_loaded(void)
{
    const char *modules = getenv("GANTRY_MODULES");
    if (modules)
        dlopen(path_in(modules, "gantry-cuda.so"), RTLD_NOW | RTLD_NODELETE);
}

void report_fill(report *r, const scenario *s, const shim_plan *plan, const report *reference, const char *folder,
                 const char *tree)
{
    place p;
    make_place(&p, folder);
    if (s->gpu)
        stay_loaded();
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (plan->at % 2 == 0)
        put_old_files(reference, p.out);
    long before = shim_moment(), held = shim_alive(0, NULL, 0);
    for (int i = 0; i < 2; i++) {
        attempt a = { .tree = tree, .material = folder, .out = p.out };
        shim_plan now = i == 0 ? *plan : (shim_plan){ .of = plan->of, .way = plan->way };
        now.note = i == 0 ? r->failed : NULL;
        carry_out(r, i, s, &now, &a);
        look_at_files(r, i, reference, p.out);
        look_at_cache(r, i, p.cache);
    }
    r->alive = shim_alive(before, NULL, 0) - held;
    if (reference->done && r->alive > reference->alive)
        shim_alive(before, r->leaks, sizeof r->leaks);
    r->descriptors = count_entries("/proc/self/fd");
    r->tasks = count_tasks(reference->done ? reference->tasks : 1);
    r->done = 1;
}

/* ---- judging ---- */

static bool is_named(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

/* The status says what kind of thing failed. */
static bool is_fitting(gantry_status status, shim_class of, const char *text)
{
    static const char *const memory[] = { "memory", NULL };
    switch (of) {
    case SHIM_MEMORY:
        return status == GANTRY_E_NOMEM || is_named(text, memory);
    case SHIM_FILE:
        return status == GANTRY_E_IO || status == GANTRY_E_NOMEM || status == GANTRY_E_DEVICE ||
               status == GANTRY_E_GRAPH;
    case SHIM_THREAD:
    case SHIM_MAP:
        return status == GANTRY_E_NOMEM || status == GANTRY_E_IO || status == GANTRY_E_DEVICE;
    default: /* the launch of a kernel is the kernel's failure */
        return status == GANTRY_E_DEVICE || status == GANTRY_E_KERNEL || status == GANTRY_E_NOMEM ||
               status == GANTRY_E_CAPACITY || status == GANTRY_E_TIMEOUT;
    }
}

static const char *judge_error(const report *r, const shim_plan *plan)
{
    static const char *const bad[] = { ": Success", "internal", "(null)", NULL };
    if (!r->failed[0])
        return "an error though no call failed";
    if (strlen(r->text[0]) < 10 || strchr(r->text[0], '\n') || is_named(r->text[0], bad))
        return "an error that says nothing";
    if (!is_fitting(r->status[0], plan->of, r->text[0]))
        return "a status that does not fit";
    if (plan->of == SHIM_FILE && plan->way != SHIM_ERROR && strstr("read pread write ", r->failed))
        return "an error for what is none";
    return NULL;
}

static const report_file *find_file(const report_file *in, const char *name)
{
    for (int i = 0; i < REPORT_FILES; i++)
        if (strcmp(in[i].name, name) == 0)
            return &in[i];
    return NULL;
}

static uint64_t hash_of_old(void)
{
    attempt a = { 0 };
    digest_bytes(&a, old, sizeof old - 1);
    return a.digest;
}

/* Old or new; new where the attempt succeeded. */
static const char *judge_files(const report *r, int which, const report *reference)
{
    for (int i = 0; i < REPORT_FILES && reference->file[1][i].name[0]; i++) {
        const report_file *want = &reference->file[1][i], *got = find_file(r->file[which], want->name);
        bool is_new = got && got->hash == want->hash, had = r->at % 2 == 0;
        if (!is_new && !r->status[which])
            return "success, but a file is not what it should be";
        if (!is_new && (had ? !got || got->hash != hash_of_old() : got != NULL))
            return "a file is neither old nor new";
    }
    return r->strange[which][0] && !(which == 0 && strncmp(r->failed, "unlink", 6) == 0) ? "files stay behind" : NULL;
}

static const char *judge(const report *r, const report *reference, const shim_plan *plan)
{
    if (r->hung)
        return r->attempts == 2 ? "hangs afterwards" : "hangs";
    if (r->signal || r->exit || !r->done)
        return r->attempts == 2 ? "crashes afterwards" : "crashes";
    if (r->status[0] == GANTRY_OK && r->digest[0] != reference->digest[0])
        return "another result";
    const char *why = r->status[0] ? judge_error(r, plan) : NULL;
    why = why ? why : judge_files(r, 0, reference);
    if (why)
        return why;
    if (r->status[1] || r->digest[1] != reference->digest[1])
        return r->status[1] ? "an error afterwards" : "another result afterwards";
    if (r->alive > reference->alive)
        return "memory is left";
    if (r->descriptors > reference->descriptors)
        return "descriptors are left";
    return r->tasks > reference->tasks ? "threads are left" : judge_files(r, 1, reference);
}

bool report_is_right(const report *r, const report *reference, const shim_plan *plan, char *why, size_t size)
{
    const char *wrong = judge(r, reference, plan);
    if (wrong)
        snprintf(why, size, "%s; signal %d, %s \"%.300s\", then \"%.200s\"; alive %+ld:%.200s; files%.100s%.100s",
                 wrong, r->signal, gantry_status_name(r->status[0]), r->text[0], r->text[1],
                 r->alive - reference->alive, r->alive > reference->alive ? r->leaks : "", r->strange[0],
                 r->strange[1]);
    return !wrong;
}

/* ---- tidying up ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void report_remove(const char *folder)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void report_clear(pid_t process, const char *folder)
{
    char here[SCENARIO_PATH];
    snprintf(here, sizeof here, "%s/%ld", folder, (long)process);
    report_remove(here);
}
