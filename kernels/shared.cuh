/* SPDX-License-Identifier: Apache-2.0 */
/* GY_SHARED(type, name) declares a large piece of shared memory of a function. The resident kernel (resident/resident.cu) has many
 * functions, of which a block carries out one at a time, so there all of them use the same bytes. */
#ifndef GY_SHARED
#define GY_SHARED(type, name) __shared__ type name
#endif
