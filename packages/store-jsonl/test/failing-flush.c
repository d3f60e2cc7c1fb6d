/* Lets the flushes of files below FLUSH_BELOW fail with EIO, from the FLUSH_FROM-th to the FLUSH_UNTIL-th. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count = 0;

static int fails(int fd) {
  char link[64], path[4096];
  const char *below = getenv("FLUSH_BELOW"), *from = getenv("FLUSH_FROM"), *until = getenv("FLUSH_UNTIL");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0 || below == NULL || strncmp(path, below, strlen(below)) != 0) return 0;
  int at = __sync_add_and_fetch(&count, 1);
  return at >= (from ? atoi(from) : 1) && at <= (until ? atoi(until) : 1 << 30);
}

#define FLUSH(name)                                     \
  int name(int fd) {                                    \
    int (*real)(int) = dlsym(RTLD_NEXT, #name);         \
    if (!fails(fd)) return real(fd);                    \
    errno = EIO;                                        \
    return -1;                                          \
  }
FLUSH(fsync)
FLUSH(fdatasync)
