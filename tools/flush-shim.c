/*
 * LD_PRELOAD: flushes that fail, and a copy of what the disk has.
 *
 * A flush of a file below FLUSH_FOLDER fails with EIO when its number is from FLUSH_FROM to FLUSH_UNTIL. As in the
 * kernel, what was written before a flush that failed counts as clean from then on: it stays readable, and no later
 * flush writes it, unless it is written again. FLUSH_DISK holds a copy of each file as it would be after a power cut,
 * named by inode and time of birth. FLUSH_LOG lists the flushes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct range { ino_t inode; off_t from, to; };
static struct range *dirty;
static size_t count, room;
static int flushes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int raw_pwrite(int fd, const char *bytes, size_t size, off_t at) {
  REAL(pwrite64);
  while (size > 0) {
    ssize_t done = real(fd, bytes, size, at);
    if (done <= 0) return -1;
    bytes += done; size -= done; at += done;
  }
  return 0;
}

static int is_watched(int fd, char *path, struct stat *facts) {
  const char *folder = getenv("FLUSH_FOLDER");
  char link[64];
  if (!folder) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, 4095);
  if (length < 0) return 0;
  path[length] = 0;
  if (strncmp(path, folder, strlen(folder)) != 0 || strstr(path, "-shm")) return 0;
  return fstat(fd, facts) == 0 && S_ISREG(facts->st_mode);
}

/* An inode is used again for a later file: the time of birth tells the two apart. */
static int disk_copy(int fd, int flags) {
  char path[4096]; struct statx facts;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &facts) != 0) return -1;
  snprintf(path, sizeof path, "%s/%llu-%lld%09u", getenv("FLUSH_DISK"), (unsigned long long)facts.stx_ino,
           (long long)facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec);
  return open(path, flags | O_CREAT, 0600);
}

static void written(int fd, off_t from, ssize_t size) {
  char path[4096]; struct stat facts;
  if (size <= 0 || !is_watched(fd, path, &facts)) return;
  pthread_mutex_lock(&lock);
  if (count == room) dirty = realloc(dirty, (room = room * 2 + 64) * sizeof *dirty);
  dirty[count++] = (struct range){facts.st_ino, from, from + size};
  pthread_mutex_unlock(&lock);
}

/* Where a write without a position went: it has moved the position, or went to the end. */
static off_t before(int fd, ssize_t size) {
  struct stat facts;
  if (size <= 0) return 0;
  if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &facts) == 0 ? facts.st_size - size : 0;
  return lseek(fd, 0, SEEK_CUR) - size;
}

static off_t at_end_or(int fd, off_t at, ssize_t size) { return fcntl(fd, F_GETFL) & O_APPEND ? before(fd, size) : at; }

static int flush(int fd) {
  char path[4096]; struct stat facts;
  if (!is_watched(fd, path, &facts)) return 0;
  pthread_mutex_lock(&lock);
  int number = ++flushes;
  const char *from = getenv("FLUSH_FROM"), *until = getenv("FLUSH_UNTIL"), *list = getenv("FLUSH_LOG");
  int fails = from && number >= atoi(from) && number <= (until ? atoi(until) : 1000000000);
  if (list) {
    FILE *file = fopen(list, "a");
    if (file) { fprintf(file, "%d %s %s\n", number, fails ? "failed" : "done", path); fclose(file); }
  }
  int copy = fails ? -1 : disk_copy(fd, O_WRONLY);
  int source = fails ? -1 : open(path, O_RDONLY);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    struct range range = dirty[i];
    if (range.inode != facts.st_ino) { dirty[kept++] = range; continue; }
    while (!fails && source >= 0 && range.from < range.to) {
      char bytes[65536];
      size_t size = range.to - range.from < (off_t)sizeof bytes ? range.to - range.from : sizeof bytes;
      ssize_t got = pread(source, bytes, size, range.from);
      if (got <= 0 || raw_pwrite(copy, bytes, got, range.from) != 0) break;
      range.from += got;
    }
  }
  count = kept;
  if (source >= 0) close(source);
  if (copy >= 0) close(copy);
  pthread_mutex_unlock(&lock);
  return fails;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  REAL(write); ssize_t done = real(fd, bytes, size); int e = errno; written(fd, before(fd, done), done); errno = e; return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  REAL(pwrite); ssize_t done = real(fd, bytes, size, at); int e = errno; written(fd, at_end_or(fd, at, done), done); errno = e; return done;
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  REAL(pwrite64); ssize_t done = real(fd, bytes, size, at); int e = errno; written(fd, at_end_or(fd, at, done), done); errno = e; return done;
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
  REAL(writev); ssize_t done = real(fd, parts, n); int e = errno; written(fd, before(fd, done), done); errno = e; return done;
}
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) {
  REAL(pwritev); ssize_t done = real(fd, parts, n, at); int e = errno; written(fd, at_end_or(fd, at, done), done); errno = e; return done;
}
ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at) {
  REAL(pwritev64); ssize_t done = real(fd, parts, n, at); int e = errno; written(fd, at_end_or(fd, at, done), done); errno = e; return done;
}
int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  char path[4096]; struct stat facts;
  int watched = is_watched(fd, path, &facts), done = real(fd, size);
  if (watched && done == 0) {
    int copy = disk_copy(fd, O_RDWR); struct stat now;
    /* What is cut off the file is cut off the disk; a longer file is longer with its next flush. */
    if (copy >= 0) { if (fstat(copy, &now) == 0 && now.st_size > size) real(copy, size); close(copy); }
  }
  return done;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fdatasync(int fd) { if (flush(fd)) { errno = EIO; return -1; } REAL(fdatasync); return real(fd); }
int fsync(int fd) { if (flush(fd)) { errno = EIO; return -1; } REAL(fsync); return real(fd); }
