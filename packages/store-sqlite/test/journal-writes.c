// Writes down, in their order, what is written, cut, flushed and deleted below a folder, and lets some flushes fail.
// Build: cc -shared -fPIC -O1 -o journal-writes.so journal-writes.c -ldl
//   JW_FOLDER   only files below it
//   JW_JOURNAL  where it is written down: "<kind> <result> <offset> <length> <path>\n", then the bytes
//   JW_FAIL     part of the path of files whose flushes fail, from JW_FROM to JW_UNTIL, counted in this process
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int flushes = 0;

static int path_of(int fd, char *path) {
  const char *folder = getenv("JW_FOLDER");
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, 4095);
  if (length < 0 || folder == NULL) return 0;
  path[length] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

static void note(char kind, int result, long offset, const void *bytes, size_t length, const char *path) {
  const char *journal = getenv("JW_JOURNAL");
  if (journal == NULL) return;
  char *entry = malloc(length + 4400);
  int head = snprintf(entry, 4400, "%c %d %ld %zu %s\n", kind, result, offset, length, path);
  if (length > 0) memcpy(entry + head, bytes, length);
  int fd = syscall(SYS_openat, AT_FDCWD, journal, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (syscall(SYS_write, fd, entry, head + length) < 0) abort();
  syscall(SYS_close, fd);
  free(entry);
}

#define REAL(name, type) static type real; if (real == NULL) real = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*write_at)(int, const void *, size_t, off_t);
#define WRITE_AT(name) \
  ssize_t name(int fd, const void *bytes, size_t length, off_t offset) { \
    REAL(#name, write_at); \
    ssize_t written = real(fd, bytes, length, offset); \
    char path[4096]; \
    if (written > 0 && path_of(fd, path)) note('w', 0, offset, bytes, written, path); \
    return written; \
  }
WRITE_AT(pwrite)
WRITE_AT(pwrite64)

typedef int (*cut_to)(int, off_t);
#define CUT_TO(name) \
  int name(int fd, off_t length) { \
    REAL(#name, cut_to); \
    int result = real(fd, length); \
    char path[4096]; \
    if (result == 0 && path_of(fd, path)) note('t', 0, length, NULL, 0, path); \
    return result; \
  }
CUT_TO(ftruncate)
CUT_TO(ftruncate64)

typedef int (*flush)(int);
static int flushed(int fd, flush real) {
  char path[4096];
  if (!path_of(fd, path)) return real(fd);
  const char *fail = getenv("JW_FAIL"), *from = getenv("JW_FROM"), *until = getenv("JW_UNTIL");
  if (fail != NULL && strlen(path) >= strlen(fail) && strcmp(path + strlen(path) - strlen(fail), fail) == 0) {
    flushes += 1;
    if (flushes >= atoi(from) && flushes <= atoi(until)) {
      note('f', -1, 0, NULL, 0, path);
      errno = EIO;
      return -1;
    }
  }
  int result = real(fd);
  note('f', result, 0, NULL, 0, path);
  return result;
}
int fsync(int fd) { REAL("fsync", flush); return flushed(fd, real); }
int fdatasync(int fd) { REAL("fdatasync", flush); return flushed(fd, real); }

int unlink(const char *path) {
  typedef int (*take_away)(const char *);
  REAL("unlink", take_away);
  int result = real(path);
  const char *folder = getenv("JW_FOLDER");
  if (result == 0 && folder != NULL && strncmp(path, folder, strlen(folder)) == 0) note('u', 0, 0, NULL, 0, path);
  return result;
}
