/* SPDX-License-Identifier: Apache-2.0 */
#include "run/philox.h"

enum { ROUNDS = 10 };

static gy_philox_block round_once(gy_philox_block x, uint32_t key0, uint32_t key1)
{
    uint64_t a = UINT64_C(0xD2511F53) * x.word[0];
    uint64_t b = UINT64_C(0xCD9E8D57) * x.word[2];
    return (gy_philox_block){ { (uint32_t)(b >> 32) ^ x.word[1] ^ key0, (uint32_t)b,
                                (uint32_t)(a >> 32) ^ x.word[3] ^ key1, (uint32_t)a } };
}

gy_philox_block gy_philox(gy_philox_block counter, uint32_t key0, uint32_t key1)
{
    for (int i = 0; i < ROUNDS; i++) {
        counter = round_once(counter, key0, key1);
        key0 += UINT32_C(0x9E3779B9); /* golden ratio */
        key1 += UINT32_C(0xBB67AE85); /* sqrt(3) - 1 */
    }
    return counter;
}

gy_philox_block gy_philox_at(uint64_t seed, uint64_t index)
{
    gy_philox_block counter = { { (uint32_t)index, (uint32_t)(index >> 32), 0, 0 } };
    return gy_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}
