/* Randomness of virtual time, below Python: `getrandom` and its kin, replaced for the whole process.
 *
 * qh3's native core draws connection ids, reset tokens and path challenges from Rust's `rand::thread_rng`,
 * and hash tables their keys, all of which begin with `getrandom` of the C library or the system call behind
 * it. So do `os.urandom` and OpenSSL. This library comes before the C library (LD_PRELOAD) and answers in its
 * stead, with SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
 *
 * Until `bentpipe_seed` is called everything goes to the kernel, as it does over sockets for ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

typedef long (*system_call)(long, ...);

static uint64_t state;
static int seeded;

void bentpipe_seed(uint64_t seed)
{
    state = seed;
    seeded = 1;
}

static uint64_t next(void)
{
    uint64_t mixed = state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static long fill(unsigned char *bytes, size_t count)
{
    for (size_t at = 0; at < count; at++)
        bytes[at] = (unsigned char)next();
    return (long)count;
}

long syscall(long number, ...)
{
    static system_call kernel;
    long argument[6];
    va_list given;

    /* No system call has more than six; those that are not given are read and ignored. */
    va_start(given, number);
    for (int at = 0; at < 6; at++)
        argument[at] = va_arg(given, long);
    va_end(given);
    if (seeded && number == SYS_getrandom)
        return fill((unsigned char *)argument[0], (size_t)argument[1]);
    if (!kernel)
        kernel = (system_call)dlsym(RTLD_NEXT, "syscall");
    return kernel(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    return syscall(SYS_getrandom, bytes, count, (long)flags);
}

int getentropy(void *bytes, size_t count)
{
    return syscall(SYS_getrandom, bytes, count, 0L) == (long)count ? 0 : -1;
}
