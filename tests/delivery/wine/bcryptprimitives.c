/* The random numbers that every program of Rust's asks for; Wine has them only under their older name. */
#include <stddef.h>

__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *data, unsigned long size);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *data, size_t size) {
    return SystemFunction036(data, (unsigned long)size);
}
