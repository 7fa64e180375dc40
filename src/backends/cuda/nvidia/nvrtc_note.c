/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC has some 100 MB, and loading it takes 10 to 50 ms. All that code in the cache is looked up by (its version,
 * what it compiles for, where it lies) is in a note there, whose name is made from all that decides which library the
 * loader would take: the folders in which it looks, with each file of one of the names in them, and the list of those
 * that ldconfig knows. The note says which file was opened, and counts as long as that is the same.
 */
#include "backends/cuda/nvidia/nvrtc_api.h"
#include "base/cache.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SETTLED = 2 }; /* seconds after which a file that is replaced has another time of change for certain */

/* ---- files ---- */

typedef struct identity {
    uint64_t device, number, bytes, written[2], changed[2];
} identity;

static bool identify(identity *to, const char *path)
{
    struct stat s;
    *to = (identity){ 0 };
    if (stat(path, &s) != 0)
        return false;
    *to = (identity){ (uint64_t)s.st_dev,
                      (uint64_t)s.st_ino,
                      (uint64_t)s.st_size,
                      { (uint64_t)s.st_mtim.tv_sec, (uint64_t)s.st_mtim.tv_nsec },
                      { (uint64_t)s.st_ctim.tv_sec, (uint64_t)s.st_ctim.tv_nsec } };
    return true;
}

static void add_file(uint64_t *hash, const char *path)
{
    identity file;
    identify(&file, path);
    *hash = gy_hash_bytes(path, strlen(path) + 1, *hash);
    *hash = gy_hash_bytes(&file, sizeof file, *hash);
}

/* The library by each of its names. False: out of memory. */
static bool add_folder(uint64_t *hash, const char *folder, size_t length)
{
    bool room = true;
    for (const char *const *name = gy_nvrtc_names; *name && room; name++) {
        gy_text path = { 0 };
        gy_text_add_n(&path, folder, length);
        gy_text_printf(&path, "/%s", *name);
        room = !path.failed;
        if (room)
            add_file(hash, path.at);
        gy_text_free(&path);
    }
    return room;
}

/* ---- where the loader looks ---- */

/* The folders in which it would look for this object: LD_LIBRARY_PATH as it was when the process began, and folders
 * that the object or the system name. */
static bool add_loader(uint64_t *hash)
{
    static const char here;
    Dl_info self;
    void *map = NULL;
    Dl_serinfo size, *all = NULL;
    if (!dladdr1(&here, &self, &map, RTLD_DL_LINKMAP) || dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0 ||
        !(all = gy_alloc(size.dls_size)))
        return false;
    memcpy(all, &size, offsetof(Dl_serinfo, dls_serpath));
    bool known = dlinfo(map, RTLD_DI_SERINFO, all) == 0;
    const Dl_serpath *path = all->dls_serpath;
    for (unsigned i = 0; i < size.dls_cnt && known; i++)
        known = add_folder(hash, path[i].dls_name, strlen(path[i].dls_name));
    gy_free(all);
    add_file(hash, "/etc/ld.so.cache");
    return known;
}

static bool add_list(uint64_t *hash, const char *list)
{
    bool room = true;
    while (list && *list && room) {
        size_t length = strcspn(list, ":");
        room = add_folder(hash, list, length);
        list += length + (list[length] == ':');
    }
    return room;
}

static bool hash_state(uint64_t *hash)
{
    *hash = gy_hash64(sizeof(gy_nvrtc));
    return add_list(hash, secure_getenv("GANTRY_CUDA_LIBRARIES")) && add_loader(hash);
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *name = slash ? slash + 1 : info->dlpi_name;
    (void)size;
    *(bool *)data = name && strncmp(name, gy_nvrtc_names[0], strlen(gy_nvrtc_names[0])) == 0;
    return *(bool *)data;
}

/* The loader takes a library of that name wherever it came from, and opening it takes no time. */
static bool is_loaded(void)
{
    bool found = false;
    dl_iterate_phdr(look_at_object, &found);
    return found;
}

/* ---- notes ---- */

typedef struct note {
    identity opened;
    int32_t name, major, minor, architectures, architecture[GY_NVRTC_ARCHITECTURES];
    char file[GY_NVRTC_FILE];
} note;

static bool is_whole(const note *n)
{
    int32_t names = 0;
    while (gy_nvrtc_names[names])
        names++;
    return n->name >= 0 && n->name < names && n->architectures >= 0 && n->architectures <= GY_NVRTC_ARCHITECTURES &&
           memchr(n->file, '\0', sizeof n->file);
}

static bool take(gy_nvrtc *to, const gy_cache_entry *entry)
{
    char *data = NULL;
    size_t bytes = 0;
    note n;
    identity now;
    bool found = gy_cache_find(entry, &data, &bytes) && bytes == sizeof n;
    if (found)
        memcpy(&n, data, sizeof n);
    gy_free(data);
    if (!found || !is_whole(&n) || !identify(&now, n.file) || memcmp(&now, &n.opened, sizeof now) != 0)
        return false;
    *to = (gy_nvrtc){
        .lib.name = gy_nvrtc_names[n.name], .major = n.major, .minor = n.minor, .architectures = n.architectures
    };
    memcpy(to->architecture, n.architecture, sizeof to->architecture);
    memcpy(to->file, n.file, sizeof to->file);
    return true;
}

/* One that was replaced just now may not be the one that was opened. */
static void keep(const gy_nvrtc *from, const gy_cache_entry *entry)
{
    note n = { .major = from->major, .minor = from->minor, .architectures = from->architectures };
    if (*from->file != '/' || !identify(&n.opened, from->file) || n.opened.changed[0] + SETTLED > (uint64_t)time(NULL))
        return;
    while (gy_nvrtc_names[n.name] && strcmp(gy_nvrtc_names[n.name], from->lib.name) != 0)
        n.name++;
    memcpy(n.architecture, from->architecture, sizeof n.architecture);
    memcpy(n.file, from->file, sizeof n.file);
    gy_cache_keep(entry, &n, sizeof n, NULL); /* without it the library is opened the next time as well */
}

gantry_status gy_nvrtc_find(gy_nvrtc *nvrtc, gantry_error *err)
{
    uint64_t hash;
    gy_cache_entry entry;
    if (is_loaded() || !hash_state(&hash) || gy_cache_open(&entry, hash, ".nvrtc", NULL))
        return gy_nvrtc_open(nvrtc, err);
    bool found = take(nvrtc, &entry);
    gantry_status status = found ? GANTRY_OK : gy_nvrtc_open(nvrtc, err);
    if (status == GANTRY_OK && !found)
        keep(nvrtc, &entry);
    gy_cache_close(&entry);
    return status;
}
