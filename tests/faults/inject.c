/* Makes one system function fail in nvtune's own processes; preloaded (LD_PRELOAD) into everything that a build starts.
 *
 * FAULT_PROGRAM  path of nvtune: processes of any other program are left alone
 * FAULT_COUNTS   file of NAMES 32-bit counters, shared by all processes of the build: calls of each function so far
 * FAULT          FUNCTION:NUMBER:ERRNO, once at that call (from 0), or FUNCTION:NUMBER+:ERRNO, from it on; unset: calls are only counted
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* tests/faults/mod.rs has the same list. */
static const char *const NAMES[] = {"open", "read",    "write", "rename", "unlink",         "mkdir", "symlink",
                                    "fork", "execve",  "wait",  "pipe",   "mmap",           "poll",  "pthread_create"};
enum { OPEN, READ, WRITE, RENAME, UNLINK, MKDIR, SYMLINK, FORK, EXECVE, WAIT, PIPE, MMAP, POLL, THREAD, COUNT };

static _Atomic unsigned *counts;
static int failing = -1, is_lasting, error_number;
static unsigned number;

/* Raw system calls: this file's own must not be counted. */
__attribute__((constructor)) static void begin(void) {
    char own[4096];
    const char *program = getenv("FAULT_PROGRAM"), *file = getenv("FAULT_COUNTS"), *fault = getenv("FAULT");
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", own, sizeof own - 1);
    if (!program || !file || length < 0) return;
    own[length] = 0;
    if (strcmp(own, program) != 0) return;
    long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    long map = syscall(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (map < 0 && map > -4096) return;
    char name[32], plus = 0;
    if (fault && sscanf(fault, "%31[^:]:%u", name, &number) == 2) {
        const char *rest = strrchr(fault, ':');
        is_lasting = rest[-1] == '+';
        error_number = atoi(rest + 1);
        for (int i = 0; i < COUNT; ++i)
            if (strcmp(name, NAMES[i]) == 0) failing = i;
    }
    (void)plus;
    counts = (_Atomic unsigned *)map;
}

/* Whether this call of a function is to fail. */
static int fails(int function) {
    if (!counts) return 0;
    unsigned call = atomic_fetch_add(&counts[function], 1);
    if (function != failing || !(is_lasting ? call >= number : call == number)) return 0;
    errno = error_number;
    return 1;
}

#define REAL(result, name, ...)                                                       \
    static result (*real)(__VA_ARGS__);                                               \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define WRAP(function, result, failure, name, parameters, arguments, ...) \
    result name parameters {                                              \
        REAL(result, name, __VA_ARGS__);                                  \
        if (fails(function)) return failure;                              \
        return real arguments;                                            \
    }

static mode_t mode_of(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; }

#define WRAP_OPEN(name)                              \
    int name(const char *path, int flags, ...) {     \
        REAL(int, name, const char *, int, ...);     \
        va_list list;                                \
        va_start(list, flags);                       \
        mode_t mode = mode_of(flags, list);          \
        va_end(list);                                \
        if (fails(OPEN)) return -1;                  \
        return real(path, flags, mode);              \
    }
#define WRAP_OPENAT(name)                                 \
    int name(int at, const char *path, int flags, ...) {  \
        REAL(int, name, int, const char *, int, ...);     \
        va_list list;                                     \
        va_start(list, flags);                            \
        mode_t mode = mode_of(flags, list);               \
        va_end(list);                                     \
        if (fails(OPEN)) return -1;                       \
        return real(at, path, flags, mode);               \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

WRAP(READ, ssize_t, -1, read, (int a, void *b, size_t c), (a, b, c), int, void *, size_t)
WRAP(READ, ssize_t, -1, pread64, (int a, void *b, size_t c, off64_t d), (a, b, c, d), int, void *, size_t, off64_t)
WRAP(READ, ssize_t, -1, readv, (int a, const struct iovec *b, int c), (a, b, c), int, const struct iovec *, int)
WRAP(WRITE, ssize_t, -1, write, (int a, const void *b, size_t c), (a, b, c), int, const void *, size_t)
WRAP(WRITE, ssize_t, -1, writev, (int a, const struct iovec *b, int c), (a, b, c), int, const struct iovec *, int)
WRAP(RENAME, int, -1, rename, (const char *a, const char *b), (a, b), const char *, const char *)
WRAP(RENAME, int, -1, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d), int, const char *, int,
     const char *)
WRAP(UNLINK, int, -1, unlink, (const char *a), (a), const char *)
WRAP(UNLINK, int, -1, unlinkat, (int a, const char *b, int c), (a, b, c), int, const char *, int)
WRAP(UNLINK, int, -1, rmdir, (const char *a), (a), const char *)
WRAP(MKDIR, int, -1, mkdir, (const char *a, mode_t b), (a, b), const char *, mode_t)
WRAP(SYMLINK, int, -1, symlink, (const char *a, const char *b), (a, b), const char *, const char *)
WRAP(FORK, pid_t, -1, fork, (void), (), void)
WRAP(FORK, int, errno, posix_spawn,
     (pid_t * a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d, char *const e[],
      char *const f[]),
     (a, b, c, d, e, f), pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
     char *const *, char *const *)
WRAP(FORK, int, errno, posix_spawnp,
     (pid_t * a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d, char *const e[],
      char *const f[]),
     (a, b, c, d, e, f), pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
     char *const *, char *const *)
WRAP(EXECVE, int, -1, execv, (const char *a, char *const b[]), (a, b), const char *, char *const *)
WRAP(EXECVE, int, -1, execvp, (const char *a, char *const b[]), (a, b), const char *, char *const *)
WRAP(EXECVE, int, -1, execve, (const char *a, char *const b[], char *const c[]), (a, b, c), const char *,
     char *const *, char *const *)
WRAP(WAIT, pid_t, -1, waitpid, (pid_t a, int *b, int c), (a, b, c), pid_t, int *, int)
WRAP(WAIT, int, -1, waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d), idtype_t, id_t, siginfo_t *, int)
WRAP(PIPE, int, -1, pipe, (int a[2]), (a), int *)
WRAP(PIPE, int, -1, pipe2, (int a[2], int b), (a, b), int *, int)
WRAP(MMAP, void *, MAP_FAILED, mmap, (void *a, size_t b, int c, int d, int e, off_t f), (a, b, c, d, e, f), void *,
     size_t, int, int, int, off_t)
WRAP(MMAP, void *, MAP_FAILED, mmap64, (void *a, size_t b, int c, int d, int e, off64_t f), (a, b, c, d, e, f),
     void *, size_t, int, int, int, off64_t)
WRAP(POLL, int, -1, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c), struct pollfd *, nfds_t, int)
WRAP(THREAD, int, errno, pthread_create,
     (pthread_t * a, const pthread_attr_t *b, void *(*c)(void *), void *d), (a, b, c, d), pthread_t *,
     const pthread_attr_t *, void *(*)(void *), void *)
