/* SPDX-License-Identifier: Apache-2.0 */
/* An element, or several as one word, of a result. Functions that workers of a resident kernel call may have to store it for another
 * GPU, too (kernels/resident/places.cuh). */
#ifndef GY_KERNELS_STORE_CUH
#define GY_KERNELS_STORE_CUH

#ifndef GY_STORE
#define GY_STORE(at, value) (*(at) = (value))
#endif

#endif
