/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/words.h"

#include "schedule/schedule.h"
#include <stdint.h>
#include <string.h>

#define WORDS(name, what, first, ...)                                                                                  \
    static const char *const name##_list[] = { __VA_ARGS__ };                                                          \
    const gy_words gy_##name##_words = { what, name##_list, sizeof name##_list / sizeof name##_list[0], first }

WORDS(space, "space of an instance", 0, "slab", "input", "output", "staging");
WORDS(role, "role of an instance", 0, "data", "accumulator", "persist", "external");
WORDS(op, "kind of an op", 0, "launch", "host", "fill", "copy", "collective", "evict", "fetch");
WORDS(lane, "kind of a lane", 0, "compute", "copy", "collective");
WORDS(carrier, "carrier of a dependency", 0, "lane", "event", "edge", "flag");
WORDS(reason, "reason of a dependency", 0, "data", "order", "reuse");
WORDS(provenance, "provenance of a duration", 0, "given", "measured", "roofline");
WORDS(access, "mode of an access", GANTRY_READ, "read", "write", "readwrite", "sum", "min", "max", "prod");
WORDS(reduction, "reduction", GANTRY_SUM, "sum", "min", "max", "prod");
WORDS(collective, "collective", GANTRY_ALL_REDUCE, "all_reduce", "reduce", "broadcast", "scatter", "gather",
      "all_gather", "reduce_scatter", "all_to_all");
#define GY_X(name, text) #text,
WORDS(algorithm, "algorithm of a collective", GY_ALGORITHM_COPY, GY_ALGORITHM_MAP(GY_X));
#undef GY_X
WORDS(replay, "replay mode", 0, "stream", "graph", "auto", "device");
WORDS(balance, "balance", 0, "static", "dynamic", "memory", "guided");
WORDS(spill, "way of spilling", 0, "off", "copy", "auto");
WORDS(objective, "objective", 0, "makespan", "period", "max_load");

const char *gy_word(const gy_words *words, size_t number)
{
    size_t i = number - words->first;
    return number >= words->first && i < words->count ? words->word[i] : "?";
}

size_t gy_word_find(const gy_words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->word[i], word) == 0)
            return words->first + i;
    return SIZE_MAX;
}

const char *gy_op_kind_name(gy_op_kind kind)
{
    return gy_word(&gy_op_words, kind);
}

const char *gy_carrier_name(gy_carrier carrier)
{
    return gy_word(&gy_carrier_words, carrier);
}

const char *gy_reason_name(gy_reason reason)
{
    return gy_word(&gy_reason_words, reason);
}

const char *gy_provenance_name(gy_provenance provenance)
{
    return gy_word(&gy_provenance_words, provenance);
}
