/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as one block sees it. Each page that it touches is copied twice: what it sees, and the twin that tells what it
 * has stored. While the block runs, what it sees is in the place of what all see, page by page as it comes to them. */
#include "fake.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUCKETS = 512 };

typedef struct sheet {
    char *at;                            /* the page */
    unsigned char *mine, *twin, *common; /* mine while it is not in place, common (what all see) while it is */
    bool placed;
    struct sheet *next;
} sheet;

struct fakeCudaView {
    sheet *bucket[BUCKETS];
    size_t sheets;
};

static fakeCudaView *shown;
static struct sigaction other_action;

bool is_weak(void)
{
    const char *text = getenv("FAKE_CUDA_WEAK");
    return text && atoi(text);
}

static void open_page(char *at, bool open)
{
    if (mprotect(at, memory_page(), open ? PROT_READ | PROT_WRITE : PROT_NONE))
        wrong("no room for more pages of a view");
}

static char *page_of(const void *at)
{
    return (char *)((uintptr_t)at / memory_page() * memory_page());
}

static sheet **bucket_of(fakeCudaView *v, const char *page)
{
    return &v->bucket[(uintptr_t)page / memory_page() % BUCKETS];
}

static sheet *find(fakeCudaView *v, const char *page)
{
    sheet *s = *bucket_of(v, page);
    while (s && s->at != page)
        s = s->next;
    return s;
}

/* ---- in place and out of it ---- */

static unsigned char *mine_of(const sheet *s)
{
    return s->placed ? (unsigned char *)s->at : s->mine;
}

static sheet *add(fakeCudaView *v, char *page)
{
    size_t size = memory_page();
    sheet *s = malloc(sizeof *s + 3 * size);
    if (!s)
        wrong("no memory for a view");
    unsigned char *room = (unsigned char *)(s + 1);
    *s = (sheet){ page, room, room + size, room + 2 * size, false, *bucket_of(v, page) };
    *bucket_of(v, page) = s;
    v->sheets++;
    open_page(page, true);
    memcpy(s->mine, page, size);
    memcpy(s->twin, page, size);
    return s;
}

static void place(sheet *s)
{
    open_page(s->at, true);
    memcpy(s->common, s->at, memory_page());
    memcpy(s->at, s->mine, memory_page());
    s->placed = true;
}

static void put_away(sheet *s)
{
    memcpy(s->mine, s->at, memory_page());
    memcpy(s->at, s->common, memory_page());
    s->placed = false;
    open_page(s->at, false);
}

/* A page that the kernel comes to. What it must not touch is for whoever had the signal before. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char *page = page_of(info->si_addr);
    if (!shown || !memory_allowed(page)) {
        sigaction(SIGSEGV, &other_action, NULL);
        return;
    }
    sheet *s = find(shown, page);
    place(s ? s : add(shown, page));
}

static void catch_faults(void)
{
    static bool caught;
    struct sigaction action = { .sa_flags = SA_SIGINFO };
    action.sa_sigaction = on_fault;
    sigemptyset(&action.sa_mask);
    if (!caught)
        sigaction(SIGSEGV, &action, &other_action);
    caught = true;
}

/* ---- publishing and refreshing ---- */

/* The page as all see it; to be given back. */
static unsigned char *open_common(const sheet *s)
{
    if (!s->placed)
        open_page(s->at, true);
    return s->placed ? s->common : (unsigned char *)s->at;
}

static void close_common(const sheet *s)
{
    if (!s->placed)
        open_page(s->at, false);
}

static bool is_dirty(const sheet *s)
{
    return memcmp(mine_of(s), s->twin, memory_page()) != 0;
}

static void publish(sheet *s, size_t from, size_t bytes)
{
    unsigned char *mine = mine_of(s);
    if (memcmp(mine + from, s->twin + from, bytes) == 0)
        return;
    unsigned char *common = open_common(s);
    for (size_t i = from; i < from + bytes; i++)
        if (mine[i] != s->twin[i])
            s->twin[i] = common[i] = mine[i];
    close_common(s);
}

static void refresh(sheet *s, size_t from, size_t bytes)
{
    unsigned char *mine = mine_of(s);
    const unsigned char *common = open_common(s);
    for (size_t i = from; i < from + bytes; i++)
        if (mine[i] == s->twin[i])
            s->twin[i] = mine[i] = common[i];
    close_common(s);
}

static void drop(fakeCudaView *v, sheet **link)
{
    sheet *s = *link;
    if (s->placed)
        put_away(s);
    *link = s->next;
    v->sheets--;
    free(s);
}

void fakeCudaViewPublish(fakeCudaView *v)
{
    for (int i = 0; i < BUCKETS; i++)
        for (sheet *s = v->bucket[i]; s; s = s->next)
            publish(s, 0, memory_page());
}

/* Pages of which nothing is unpublished need no copies. */
void fakeCudaViewRefresh(fakeCudaView *v)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (sheet **link = &v->bucket[i]; *link;) {
            if (is_dirty(*link)) {
                refresh(*link, 0, memory_page());
                link = &(*link)->next;
            } else {
                drop(v, link);
            }
        }
    }
}

/* Hardware may write back and forget sooner: words here and there. */
static void leak(fakeCudaView *v)
{
    size_t bucket = draw() % BUCKETS;
    for (int i = 0; i < BUCKETS && !v->bucket[bucket]; i++)
        bucket = (bucket + 1) % BUCKETS;
    sheet *s = v->bucket[bucket];
    for (int i = 0; s && i < 16; i++) {
        size_t at = draw() % (memory_page() / 8) * 8;
        if (draw() % 2)
            publish(s, at, 8);
        else
            refresh(s, at, 8);
        s = draw() % 4 ? s : s->next;
    }
}

/* Hardware may load sooner than it is told to: what lies there by then is seen until the block refreshes. */
static void load_early(fakeCudaView *v)
{
    char *page = memory_any(draw());
    if (page && !find(v, page)) {
        add(v, page);
        open_page(page, false);
    }
}

/* ---- for the emulator ---- */

fakeCudaView *fakeCudaViewNew(void)
{
    fakeCudaView *v = is_weak() ? calloc(1, sizeof *v) : NULL;
    if (v)
        catch_faults();
    return v;
}

void fakeCudaViewFree(fakeCudaView *v)
{
    for (int i = 0; v && i < BUCKETS; i++)
        while (v->bucket[i])
            drop(v, &v->bucket[i]);
    free(v);
}

void fakeCudaViewEnter(fakeCudaView *v)
{
    if (v && draw() % 8 == 0)
        load_early(v);
    shown = v;
}

void fakeCudaViewLeave(fakeCudaView *v, int ended)
{
    shown = NULL;
    if (v && ended)
        fakeCudaViewPublish(v);
    for (int i = 0; v && i < BUCKETS; i++)
        for (sheet *s = v->bucket[i]; s; s = s->next)
            if (s->placed)
                put_away(s);
    if (v && draw() % 4 == 0)
        leak(v);
}

/* Ends the program as the access itself would, if the kernel must not touch it. */
static bool is_seen(const void *at)
{
    int device = -1;
    if (memory_type(at, &device) == CU_MEMORYTYPE_DEVICE && !memory_allowed(at))
        wrong("a kernel loads or stores a word at %p of device %d, to which it has no access", at, device);
    return device >= 0;
}

uint64_t fakeCudaViewLoad(fakeCudaView *v, const uint64_t *at)
{
    char *page = page_of(at);
    size_t from = (size_t)((const char *)at - page);
    uint64_t value;
    if (!is_seen(at))
        return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    const sheet *s = find(v, page);
    if (s && memcmp(mine_of(s) + from, s->twin + from, sizeof value) != 0) {
        memcpy(&value, mine_of(s) + from, sizeof value);
        return value;
    }
    if (s && s->placed) {
        memcpy(&value, s->common + from, sizeof value);
        return value;
    }
    open_page(page, true);
    value = *at;
    open_page(page, false);
    return value;
}

void fakeCudaViewStore(fakeCudaView *v, uint64_t *at, uint64_t value)
{
    char *page = page_of(at);
    size_t from = (size_t)((char *)at - page);
    if (!is_seen(at)) {
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
        return;
    }
    sheet *s = find(v, page);
    if (s) {
        memcpy(open_common(s) + from, &value, sizeof value);
        memcpy(mine_of(s) + from, &value, sizeof value);
        memcpy(s->twin + from, &value, sizeof value);
        close_common(s);
        return;
    }
    open_page(page, true);
    *at = value;
    open_page(page, false);
}

void fakeCudaViewRead(fakeCudaView *v, const void *at, size_t bytes)
{
    sheet *s = find(v, page_of(at));
    if (s)
        refresh(s, (size_t)((const char *)at - s->at), bytes);
}

void fakeCudaViewWrite(fakeCudaView *v, const void *at, size_t bytes)
{
    sheet *s = find(v, page_of(at));
    if (s)
        publish(s, (size_t)((const char *)at - s->at), bytes);
}
